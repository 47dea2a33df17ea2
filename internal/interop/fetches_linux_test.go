package interop

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fetches is a curl that gets a file from an nginx over and over, while other
// things happen.
type fetches struct {
	*process
	stop string // a file that ends them
	want string // the hash of what is fetched
}

// fetchTools are the programs that it needs.
var fetchTools = []string{"curl", "nginx", "sha256sum"}

// fetchSize is that of the file, in bytes.
const fetchSize = 4_000_000

// fetch begins to fetch. A fetch that is not complete ends it.
func (n *network) fetch(from, to string) *fetches {
	n.Helper()
	const loop = `while [ ! -e "$2" ]; do
		curl -gsS --fail --max-time 55 -o "$3" "$1"
		sha256sum <"$3"
	done`
	url := n.webServer(to, n.addr(to), []int{fetchSize})
	f := &fetches{stop: filepath.Join(n.dir, from+".stop"), want: fmt.Sprintf("%x", sha256.Sum256(webFile(fetchSize)))}
	n.Cleanup(func() { os.Remove(f.stop) }) // another test may fetch there
	f.process = n.start(from, "sh", "-ec", loop, "sh", fmt.Sprintf("%s/%d", url, fetchSize), f.stop, filepath.Join(n.dir, from+".got"))
	f.name = from + ": curl of " + url
	return f
}

// done is how many fetches are, each of them right.
func (f *fetches) done() int {
	f.n.Helper()
	lines := strings.SplitAfter(f.stdout.String(), "\n")
	lines = lines[:len(lines)-1] // what is not a line yet
	for _, line := range lines {
		if !strings.HasPrefix(line, f.want) {
			f.n.Fatalf("%s: arrived changed: %s", f.name, line)
		}
	}
	return len(lines)
}

// moves waits until a fetch is done that has begun since.
func (f *fetches) moves(what string) {
	f.n.Helper()
	until := f.done() + 2
	f.n.eventually(what+": a fetch begins and is done", func() bool {
		select {
		case <-f.exited:
			f.n.Fatalf("%s: %s: ended: %v\n%s", what, f.name, f.err, f.messages())
		default:
		}
		return f.done() >= until
	})
}

// end ends the fetching, all of which must have been done.
func (f *fetches) end() {
	f.n.Helper()
	if err := os.WriteFile(f.stop, nil, 0o644); err != nil {
		f.n.Fatal(err)
	}
	if out, err := f.wait(); err != nil {
		f.n.Errorf("%s: %v\n%s", f.name, err, out)
	}
	f.n.Logf("%s: %d fetches", f.name, f.done())
}
