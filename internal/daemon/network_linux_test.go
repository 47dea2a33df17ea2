package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"weft/lab"
	"weft/topology"
)

// labName is for a test's lab: runs at the same time do not meet, and what a
// killed one left can be told.
func labName(pid int, letter string) string { return fmt.Sprintf("host%d%s", pid, letter) }

var testLab = regexp.MustCompile(`^weft-(host([0-9]+)[a-z])-h0\.0\.2$`)

func clearTestLabs() {
	names, _ := filepath.Glob("/run/netns/weft-host*")
	for _, name := range names {
		m := testLab.FindStringSubmatch(filepath.Base(name))
		if m == nil {
			continue
		}
		if pid, err := strconv.Atoi(m[2]); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			lab.Down(m[1])
		}
	}
}

// network is a lab in which daemons run.
type network struct {
	*testing.T
	lab      *lab.Lab
	dir      string // that anybody may read
	children *children
}

// newNetwork builds a lab for one test.
func newNetwork(t *testing.T, letter string, change ...func(*lab.Config)) *network {
	t.Helper()
	needNetwork(t)
	lab, err := buildLab(t.Context(), letter, change...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	return networkOf(t, lab)
}

// sharedNetwork is the lab of those tests that leave it as it was: the first one builds it,
// and TestMain takes it down. Tests that change the fabric or a host's own settings build
// theirs with newNetwork.
func sharedNetwork(t *testing.T) *network {
	t.Helper()
	needNetwork(t)
	lab, err := sharedLab()
	if err != nil {
		t.Fatal(err)
	}
	return networkOf(t, lab)
}

var (
	sharedLab = sync.OnceValues(func() (*lab.Lab, error) {
		l, err := buildLab(context.Background(), "z")
		if err == nil {
			closeSharedLab = l.Close
		}
		return l, err
	})
	closeSharedLab = func() error { return nil }
)

// needNetwork skips a test where no lab can be built, or where its tools are missing.
func needNetwork(t *testing.T) {
	t.Helper()
	if err := lab.CanBuild(); err != nil {
		t.Skipf("network namespaces: %v", err)
	}
	for _, tool := range []string{"grep", "ip", "sysctl", "tc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
}

func buildLab(ctx context.Context, letter string, change ...func(*lab.Config)) (*lab.Lab, error) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		return nil, err
	}
	// Quick links: what is tested is where packets go.
	c := lab.Config{Name: labName(os.Getpid(), letter), Topology: top, RateMbit: 200, BurstBytes: 20000, QueueBytes: 150000}
	for _, f := range change {
		f(&c)
	}
	return lab.Hold(ctx, c)
}

func networkOf(t *testing.T, lab *lab.Lab) *network {
	t.Helper()
	dir, err := os.MkdirTemp("", "weft-h5-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return &network{t, lab, dir, new(children)}
}

// of is the same network for a subtest.
func (n *network) of(t *testing.T) *network {
	same := *n
	same.T = t
	return &same
}

func (n *network) node(name string) topology.Node {
	n.Helper()
	node, err := n.lab.Config.Topology.Lookup(name)
	if err != nil {
		n.Fatal(err)
	}
	return node
}

// do runs f in a node's namespace, where it must succeed.
func (n *network) do(node string, f func() error) {
	n.Helper()
	if err := n.lab.Do(n.node(node).ID, f); err != nil {
		n.Fatalf("%s: %v", node, err)
	}
}

func (n *network) shell(node, script string) (out string) {
	n.Helper()
	n.do(node, func() error {
		b, err := exec.Command("sh", "-c", script).Output()
		out = string(b)
		return err
	})
	return out
}

// configuration is all of a host that a daemon changes.
func (n *network) configuration(node string) string {
	n.Helper()
	return n.shell(node, `ip rule; ip -6 rule; ip route show table all; ip -6 route show table all; ip -d link show p0
		ip link | grep -c mtu; grep -rs . /proc/sys/net/ipv4/conf; tc filter show dev p0 ingress; tc filter show dev p0 egress`)
}

// wantUnchanged compares with a configuration of before.
func (n *network) wantUnchanged(node, before string) {
	n.Helper()
	after := n.configuration(node)
	for _, pair := range [][2]string{{before, after}, {after, before}} {
		for _, line := range strings.Split(pair[0], "\n") {
			if !strings.Contains(pair[1], line) {
				n.Errorf("%s: only before or only after: %s", node, line)
			}
		}
	}
}
