package interop

import (
	"os"
	"regexp"
	"strings"
)

// guide has the commands of docs/install.md run, each as it stands there.
type guide struct {
	m       *machine
	pending map[string]bool // what has not been run
}

// asked has apt answer itself, and fetch nothing.
const asked = `apt() { apt-get -y -q --no-install-recommends --allow-downgrades "$@"; }
`

func (m *machine) guide() *guide {
	m.n.Helper()
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		m.n.Fatal(err)
	}
	g := &guide{m, make(map[string]bool)}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(line, " #")
			g.pending[strings.TrimSpace(line)] = true
		}
	}
	return g
}

// run runs a line of the guide.
func (g *guide) run(line string) string {
	g.m.n.Helper()
	g.seen(line)
	return g.m.must(asked + line)
}

// seen is for a line that the test runs in another way.
func (g *guide) seen(line string) {
	g.m.n.Helper()
	if _, ok := g.pending[line]; !ok {
		g.m.n.Errorf("docs/install.md has no command %q", line)
	}
	g.pending[line] = false
}

// install installs a package by a command of the guide.
func (g *guide) install(file, line string) string {
	g.m.n.Helper()
	g.m.must("rm -rf /tmp/packages; mkdir /tmp/packages; cp /packages/" + file + " /tmp/packages")
	return g.run(line)
}

// all tells of commands that nothing has run.
func (g *guide) all() {
	g.m.n.Helper()
	for line, pending := range g.pending {
		if pending {
			g.m.n.Errorf("docs/install.md has %q, which no test runs", line)
		}
	}
}
