package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology"
)

// screen is what a command that runs has printed. It is safe for concurrent use.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) waitFor(t testing.TB, what string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(s.String(), what); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waiting for %q:\n%s", what, s)
		}
	}
}

// agents runs weft lab agents until the function that it returns is called, which
// waits for its end.
func agents(t *testing.T, args ...string) (*screen, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, ended := new(screen), make(chan error, 1)
	go func() {
		cmd := newRootCmd()
		cmd.SetOut(out)
		cmd.SetErr(out)
		cmd.SetArgs(append([]string{"lab", "agents"}, args...))
		ended <- cmd.ExecuteContext(ctx)
	}()
	return out, sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("weft lab agents: %v", err)
		}
	})
}

const someKeys = `keys:
  - id: 3
    key: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=
`

// Agents of a whole lab see what fails and what heals, take it out of the
// switches' routes, and leave the lab as it was.
func TestLabAgents(t *testing.T) {
	slowtest.System(t)
	lab := chaosLab(t, "w")
	name := lab.Config.Name
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(keys, []byte(someKeys), 0o600); err != nil {
		t.Fatal(err)
	}
	out, end := agents(t, "--name", name, "--hello", "200ms", "--keys-file", keys)
	defer end()
	out.waitFor(t, "agents run on 20 switches of lab "+name)
	if status := mustWeft(t, "lab", "status", "--name", name); !strings.Contains(status, "agents run on 20 of 20 switches") {
		t.Errorf("status says %s", status)
	}
	wantError(t, "lab agents --name "+name, "e0.0")
	mustWeft(t, "lab", "fail", "--name", name, "a0.2-c1.1")
	out.waitFor(t, "down  a0.2-c1.1")
	mustWeft(t, "lab", "heal", "--name", name)
	out.waitFor(t, "up    a0.2-c1.1")
	mustWeft(t, "lab", "fail", "--name", name, "--silent", "3.1")
	out.waitFor(t, "down  a3.2-c1.2")
	end()
	if !strings.Contains(out.String(), "keep the routes that lead around failures (c1.2 SILENT)") {
		t.Errorf("with a failure left it says\n%s", out)
	}
	if status := mustWeft(t, "lab", "status", "--name", name); !strings.Contains(status, "agents run on 0 of 20 switches") {
		t.Errorf("status says %s", status)
	}
	mustWeft(t, "lab", "heal", "--name", name)
	out, end = agents(t, "--name", name)
	defer end()
	out.waitFor(t, "agents run on 20 switches")
	end()
	wantPlanned(t, lab)
}

// Agents end when their lab is taken down, also if another one of its name is built at once, and
// say so. That the links go is no news.
func TestLabAgents_endWithTheLab(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	top, err := topology.Parse("leaf-spine:leaves=2,spines=2,hosts=1")
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("t%dd", os.Getpid())
	up := func() {
		l, err := lab.Up(t.Context(), lab.Config{Name: name, Topology: top})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := lab.Down(name); err != nil {
			t.Error(err)
		}
	})
	for _, again := range []bool{false, true} {
		up()
		out, end := agents(t, "--name", name, "--hello", "20ms")
		defer end()
		out.waitFor(t, "agents run on 4 switches")
		mustWeft(t, "lab", "down", "--name", name)
		if again {
			up()
		}
		out.waitFor(t, "lab "+name+" is down: its agents end")
		end() // fails if they do
		if s := out.String(); strings.Contains(s, "  down  ") || strings.Count(s, "\n") != 2 {
			t.Errorf("built again %t: it also says\n%s", again, s)
		}
	}
}

// wantPlanned checks that the switches are as the lab's plan has them.
func wantPlanned(t *testing.T, lab *lab.Lab) {
	t.Helper()
	top := lab.Config.Topology
	for n := range top.Nodes() {
		if n.Layer == topology.LayerHost {
			continue
		}
		plan, err := fabric.Plan(top, n.ID, fabric.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = lab.Do(n.ID, func() error {
			r, err := fabric.Apply(plan)
			if r.Changed != 0 {
				t.Errorf("%s: %d settings were not as planned", n.Name, r.Changed)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestLabAgents_bad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	for text, want := range map[string]string{
		"":                              "there are none",
		"keys:\n  - id: 3\n":            "neither key nor key_file",
		"keys:\n  - id: 3\n    key: x":  "32 bytes",
		"hello: 5ms\n":                  "unknown key",
		"keys: []\nrefuse: everything.": "refuse",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		wantError(t, "lab agents --keys-file "+file, "--keys-file", want)
	}
	wantError(t, "lab agents --keys-file /nonexistent", "--keys-file", "/nonexistent")
	wantError(t, "lab agents --name nosuchlab", "nosuchlab is not up")
}

// Agents of a lab have its leaves take live paths only, also where others' links have failed.
// Without agents nobody tells a leaf of these.
func TestLabAgents_leaf(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	top, err := topology.Parse("leaf-spine:leaves=2,spines=2,hosts=1")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{"conga", "luopan"} {
		t.Run(rule, func(t *testing.T) {
			name := fmt.Sprintf("t%d%s", os.Getpid(), rule[:1])
			t.Cleanup(func() {
				if _, err := lab.Down(name); err != nil {
					t.Error(err)
				}
			})
			l, err := lab.Up(t.Context(), lab.Config{Name: name, Topology: top, Balance: rule})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			leaves := slices.Sorted(top.Racks())
			near, far := leaves[0], leaves[1]
			ports := top.Ports(far)
			remote := top.LinkName(ports[len(ports)-1].Link)
			several := func() int { // racks to which the near leaf has several paths
				s, err := l.Balanced(near)
				if err != nil || s == nil {
					t.Fatalf("%+v, %v", s, err)
				}
				return s.Destinations
			}
			within := func(want int) {
				t.Helper()
				for end := time.Now().Add(time.Minute); several() != want; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%d racks have several paths, want %d", several(), want)
					}
				}
			}
			mustWeft(t, "lab", "fail", "--name", name, remote)
			if n := several(); n != 1 {
				t.Fatalf("without agents %d racks have several paths, want 1", n)
			}
			out, end := agents(t, "--name", name, "--hello", "50ms")
			defer end()
			out.waitFor(t, "down  "+remote)
			within(0)
			mustWeft(t, "lab", "heal", "--name", name)
			out.waitFor(t, "up    "+remote)
			within(1)
			mustWeft(t, "lab", "fail", "--name", name, remote)
			within(0)
			mustWeft(t, "lab", "heal", "--name", name)
			end()
			if n := several(); n != 1 {
				t.Errorf("once agents have ended %d racks have several paths, want 1", n)
			}
		})
	}
}
