package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/frr"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
	"weft/topology/graph"
)

// A fabric with an operator's addresses: hosts reach each other over both families, leaves
// have every path, spines take outer headers off, and what fails is led around.
func TestGraph(t *testing.T) {
	l := upGraph(t, Config{Name: kerneltest.LabName("i"), Graph: operators(t, "leaf-spine:leaves=2,spines=2,hosts=1", 1)})
	l.becomes(t, "two ways between the leaves", 2)
	bounces(t, l, "h1-1", "h2-1")
	if up := portTo(t, l, "leaf1", "spine1"); !up.Up || up.Port != "swp2" {
		t.Errorf("port %+v", up)
	}
	mustFail(t, l, "spine1-leaf1", FailLoud)
	l.becomes(t, "one way after a link has failed", 1)
	mustHeal(t, l, "leaf1-spine1")
	l.becomes(t, "two ways after it was healed", 2)
	wantNothingLeft(t, l)
}

// What fails otherwise, and what is damaged, is led around and repaired.
func TestGraph_failuresAndRepairs(t *testing.T) {
	slowtest.System(t)
	l := upGraph(t, Config{Name: kerneltest.LabName("o"), Graph: operators(t, "leaf-spine:leaves=2,spines=2,hosts=1", 3)})
	for _, target := range []string{"leaf2:swp3", "spine1", "spine2:swp2-leaf2:swp3"} {
		mustFail(t, l, target, FailLoud)
		l.becomes(t, "one way after "+target+" has failed", 1)
		mustHeal(t, l)
		l.becomes(t, "two ways after "+target+" was healed", 2)
	}
	mended(t, l)
	l.becomes(t, "two ways after repairs", 2)
	wantNothingLeft(t, l)
}

// bounces sends a packet in a packet to each spine, and looks for what was inside at its
// end.
func bounces(t *testing.T, l *Lab, from, to string) {
	t.Helper()
	src, dst := l.mustLookup(t, from), l.mustLookup(t, to)
	out, in := openWire(t, l, src, 0), openWire(t, l, dst, 0)
	inner := kerneltest.IPv4{TTL: 17, Protocol: 253, Src: l.addresses(t, from)[0], Dst: l.addresses(t, to)[0]}
	first, _ := l.Config.Graph.Tier(2)
	for id := int(first); id < l.Config.Graph.NumNodes(); id++ {
		n := l.Config.plant().Node(topology.NodeID(id))
		payload := []byte("by " + n.Name)
		outer := kerneltest.IPv4{TTL: 64, Protocol: 4, Src: inner.Src, Dst: n.Addr}
		out.Send(t, outer.Bytes(inner.Bytes(payload)))
		for {
			got := in.Receive(t)
			if got[9] != 253 { // of an earlier connection
				continue
			}
			if !strings.HasSuffix(string(got), string(payload)) || got[8] >= 16 { // two switches or more behind the spine
				t.Errorf("by %s arrives %x", n.Name, got)
			}
			break
		}
		for _, s := range l.Status() {
			if s.Node == n.Name && s.Counters != nil && s.Counters.Decapsulated != 1 {
				t.Errorf("%s has decapsulated %+v", n.Name, s.Counters)
			}
		}
	}
}

// mended damages a lab, and has Up repair it.
func mended(t *testing.T, l *Lab) {
	t.Helper()
	again := func() []string {
		t.Helper()
		a := mustUp(t, l.Config)
		if !a.Reused {
			t.Error("built anew")
		}
		return a.Repaired
	}
	if did := again(); len(did) > 0 {
		t.Errorf("as built: repaired %q", did)
	}
	dir := l.Config.router(l.mustLookup(t, "leaf1")).Dir
	kerneltest.Shell(t, l.Namespace(l.mustLookup(t, "h1-1")), "kill -9 $(cat "+dir+"/bgpd.pid); ip -6 route del default; ip addr flush dev eth1 scope global")
	kerneltest.Within(t, kerneltest.Patience, "the end of bgpd", func() bool { return l.Routing(l.mustLookup(t, "leaf1")) != nil })
	did := again()
	for _, want := range []string{"leaf1: started FRR's bgpd again", "h1-1: put back IPv6 addresses", "h1-1: put back addresses of eth1"} {
		if !slices.Contains(did, want) {
			t.Errorf("repaired %q, want %q", did, want)
		}
	}
	if err := kernel.DeleteNamespace(l.Namespace(l.mustLookup(t, "spine2"))); err != nil {
		t.Fatal(err)
	}
	did = again()
	for _, want := range []string{"spine2: made its namespace again", "leaf1-spine2: made the link again"} {
		if !slices.Contains(did, want) {
			t.Errorf("repaired %q, want %q", did, want)
		}
	}
	l.Close() // the handles are of what was there before
}

// wantNothingLeft takes a lab down and looks for what it has left.
func wantNothingLeft(t *testing.T, l *Lab) {
	t.Helper()
	name := l.Config.Name
	r, err := Down(name)
	if err != nil || len(r.Ended) > 0 || r.Namespaces != l.Config.numNodes() {
		t.Errorf("Down: %+v, %v", r, err)
	}
	wantNoTrace(t, name)
}

func wantNoTrace(t *testing.T, name string) {
	t.Helper()
	if left := namespacesOf(t, name); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(kernel.RunDir, name+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		if b, _ := os.ReadFile(file); strings.Contains(string(b), routingDir(name)+"/") {
			t.Errorf("left: %s: %q", file, b)
		}
	}
}

// Two leaves share a rack with a host that is wired to both, twice to the first: it is
// reached while one of its links lives. Switches without IPv4, AS or names of ports do.
func TestGraph_hostAtTwoLeaves(t *testing.T) {
	slowtest.System(t)
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	g, err := graph.Parse([]byte(`nodes:
  spine-1: {tier: 2, addresses: ["2001:db8:f::1"]}
  spine-2: {tier: 2, addresses: [172.16.0.2, "2001:db8:f::2"]}
  leaf1: {tier: 1, prefixes: [192.168.1.64/26, "2001:db8:1::/64"]}
  leaf2: {tier: 1, prefixes: [192.168.1.64/26, "2001:db8:1::/64"]}
  leaf3: {tier: 1, prefixes: [10.9.0.0/26, "2001:db8:3::/64"]}
  h1: {addresses: [192.168.1.66, "2001:db8:1::66"]}
  h3: {addresses: [10.9.0.7, "2001:db8:3::7"]}
links:
  - {ends: [h1, leaf1], count: 2}
  - {ends: [h1, leaf2]}
  - {ends: [h3, leaf3]}
  - {ends: [leaf1, spine-1], count: 2}
  - {ends: [leaf1, spine-2]}
  - {ends: [leaf2, spine-1]}
  - {ends: [leaf2, spine-2]}
  - {ends: [leaf3, spine-1]}
  - {ends: [leaf3, spine-2]}
`))
	if err != nil {
		t.Fatal(err)
	}
	l := upGraph(t, Config{Name: kerneltest.LabName("p"), Graph: g})
	connected(t, l, "h3", "h1")
	connected(t, l, "h1", "h3")
	host := [2]netip.Prefix{netip.MustParsePrefix("192.168.1.66/32"), netip.MustParsePrefix("2001:db8:1::66/128")}
	around := func(leaf string, ways int) {
		t.Helper()
		kerneltest.Within(t, kerneltest.Patience, leaf+"'s way to its host by the spines", func() bool {
			have, err := l.Config.routes(l.mustLookup(t, leaf))
			return err == nil && have[host[0]] == ways && have[host[1]] == ways
		})
	}
	for _, target := range []string{"h1-leaf1", "leaf2-h1", "leaf1-spine-1", "leaf1:p2"} {
		mustFail(t, l, target, FailLoud)
		switch target {
		case "h1-leaf1": // both links
			around("leaf1", 3)
		case "leaf2-h1":
			around("leaf2", 2)
		case "leaf1-spine-1":
			kerneltest.Within(t, kerneltest.Patience, "one way", func() bool { return l.waysTo(t, "leaf1", "leaf3") == [2]int{1, 1} })
		case "leaf1:p2":
			kerneltest.Within(t, kerneltest.Patience, "two ways", func() bool { return l.waysTo(t, "leaf1", "leaf3") == [2]int{2, 2} })
		}
		connected(t, l, "h3", "h1")
		connected(t, l, "h1", "h3")
		mustHeal(t, l)
		kerneltest.Within(t, kerneltest.Patience, "three ways again", func() bool { return l.waysTo(t, "leaf1", "leaf3") == [2]int{3, 3} })
	}
	wantNothingLeft(t, l)
}

func TestGraph_upCancelled(t *testing.T) {
	kerneltest.NeedRoot(t)
	cfg := Config{Name: kerneltest.LabName("k"), Graph: operators(t, "leaf-spine:leaves=1,spines=1,hosts=1", 2)}
	t.Cleanup(func() { Down(cfg.Name) })
	for _, at := range []int{10, 12} { // of 12 steps: the last 3 start FRR; then BGP has not found anything yet
		ctx, cancel := context.WithCancel(t.Context())
		cfg.Progress = func(done, _ int) {
			if done == at {
				cancel()
			}
		}
		if _, err := Up(ctx, cfg); err == nil || !strings.Contains(err.Error(), "context canceled") {
			t.Errorf("cancelled at step %d: error %v", at, err)
		}
		wantNoTrace(t, cfg.Name)
		cancel()
	}
}

// A process that dies without taking down its lab leaves daemons, which end with the lab.
func TestGraph_heldByADeadProcess(t *testing.T) {
	kerneltest.NeedRoot(t)
	cfg := Config{Name: kerneltest.LabName("l"), Graph: operators(t, "leaf-spine:leaves=1,spines=1,hosts=1", 2)}
	l, err := Hold(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	leaf := l.mustLookup(t, "leaf1")
	if err := l.Routing(leaf); err != nil {
		t.Error(err)
	}
	// FRR makes directories elsewhere, too.
	links, _ := filepath.Glob(filepath.Join(routingDir(cfg.Name), "*", "*.crash"))
	var elsewhere []string
	for _, link := range links {
		dir, err := filepath.EvalSymlinks(link)
		if err != nil {
			t.Error(err)
		}
		elsewhere = append(elsewhere, dir)
	}
	if len(elsewhere) != 4 {
		t.Errorf("FRR's directories are %v, want 4", elsewhere)
	}
	l.lock.release()
	l.lock = nil
	l.Close()
	if _, err := Down(cfg.Name); err != nil {
		t.Error(err)
	}
	wantNoTrace(t, cfg.Name)
	for _, dir := range elsewhere {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("left: %s", dir)
		}
	}
}

// The whole fabric of a fat-tree, with BFD: every pair of hosts, and all paths.
func TestGraph_fatTree(t *testing.T) {
	slowtest.System(t)
	l := upGraph(t, Config{Name: kerneltest.LabName("m"), Graph: operators(t, "fat-tree:k=4", 1), BFD: true})
	for a := range 8 {
		connected(t, l, fmt.Sprintf("h%d-1", a+1), fmt.Sprintf("h%d-2", (a+5)%8+1))
	}
	// On a busy machine BFD takes a link down for a moment.
	ways := func(want int) {
		t.Helper()
		kerneltest.Within(t, kerneltest.Patience, fmt.Sprintf("%d ways from leaf1 to leaf8", want), func() bool { return l.waysTo(t, "leaf1", "leaf8") == [2]int{want, want} })
	}
	ways(2)
	bounces(t, l, "h1-1", "h8-2")
	// BGP goes on over a link that drops data alone, and does not know.
	mustFail(t, l, "leaf1-spine1", FailSilentData)
	mustFail(t, l, "leaf1-spine2", FailLoud)
	for _, a := range l.addresses(t, "h8-2") {
		kerneltest.Shell(t, l.Namespace(l.mustLookup(t, "h1-1")), "! ping -c 3 -i 0.2 -W 1 "+a.String())
	}
	ways(1)
	mustHeal(t, l)
	ways(2)
	mustFail(t, l, "leaf1-spine1", FailSilent) // which BFD alone finds in less than 9 s
	kerneltest.Within(t, 5*time.Second, "one way up", func() bool { return l.waysTo(t, "leaf1", "leaf8") == [2]int{1, 1} })
	connected(t, l, "h1-1", "h8-2")
	mustHeal(t, l)
	ways(2)
	wantNothingLeft(t, l)
}
