package daemon

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/eventlog"
	"weft/topology"
	"weft/topology/graph"
	"weft/topoupdate/bgp"
	"weft/topoupdate/bgp/learn"
)

// told is a learner whose fabric a test says.
type told struct {
	t    *topology.Topology
	six  *topology.Topology
	err  error
	wake chan struct{}
}

func (l *told) fabric() (views, error)   { return views{l.t, l.six}, l.err }
func (l *told) changed() <-chan struct{} { return l.wake }
func (l *told) status() *learn.Status    { return nil }
func (l *told) Close() error             { return nil }

// leafSpine is a graph of so many racks, 10.0.0.0/24 and on, and spines as 10.0.0.2 sees it.
// Links that are cut, such as e0-s1, are missing.
func leafSpine(t *testing.T, racks, spines int, cut ...string) *topology.Topology {
	t.Helper()
	return leafSpineTo(t, "10.0.0.2", racks, spines, cut...)
}

// leafSpineTo is leafSpine as another address of the host sees it, such as 2001:db8::2. The
// racks' prefixes of IPv6 are 2001:db8::/64 and on.
func leafSpineTo(t *testing.T, self string, racks, spines int, cut ...string) *topology.Topology {
	t.Helper()
	six := func(net, host byte) netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 7: net, 15: host})
	}
	var s graph.Spec
	s.Nodes = append(s.Nodes, graph.Node{Name: "h", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.2"), six(0, 2)}})
	s.Links = append(s.Links, graph.Link{Ends: [2]string{"h", "e0"}})
	for i := range spines {
		s.Nodes = append(s.Nodes, graph.Node{Name: fmt.Sprint("s", i), Tier: 2, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{172, 16, 0, byte(i)}), six(255, byte(i))}})
	}
	for e := range racks {
		name := fmt.Sprint("e", e)
		s.Nodes = append(s.Nodes, graph.Node{Name: name, Tier: 1, Prefixes: []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(e), 0}), 24), netip.PrefixFrom(six(byte(e), 0), 64)}})
		for i := range spines {
			if l := [2]string{name, fmt.Sprint("s", i)}; !slices.Contains(cut, l[0]+"-"+l[1]) {
				s.Links = append(s.Links, graph.Link{Ends: l})
			}
		}
	}
	g, err := graph.New(s)
	if err != nil {
		t.Fatal(err)
	}
	v, err := topology.FromGraph(g, netip.MustParseAddr(self))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const learning = "policy: drb\ndrain: 0s\ntopology: bgp\nbgp: {as: 4200000001, neighbors: [10.0.0.1=65101]}\n"

// newLearner is a daemon that learns its fabric, and its configuration.
func newLearner(t *testing.T, l *told, more ...string) (*world, string) {
	t.Helper()
	text := learning + strings.Join(more, "") + "status: " + t.TempDir() + "/status\n"
	w := &world{fakeKernel: &fakeKernel{random: rand.New(rand.NewPCG(1, 1)), index: 7}, now: time.Now()}
	w.accepted = parsed(t, text)
	k := w.kernel()
	k.learn = func(*Config) (learner, error) { return l, nil }
	w.d = newDaemon("host.yaml", w.accepted, k, eventlog.Lines(&w.log))
	if err := w.d.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.d.stop() })
	return w, text
}

func (w *world) downs() (names []string) {
	for _, l := range w.d.topology.Down() {
		names = append(names, w.d.topology.LinkName(l))
	}
	return names
}

// A host that hears nothing yet stays out of the way, and says why. When it hears, it works.
func TestLearn_waitsForTheSwitches(t *testing.T) {
	l := &told{err: fmt.Errorf("%w: no session", learn.ErrUnlearned)}
	w, text := newLearner(t, l)
	if s := w.d.snapshot(); s.State != StateAway || !strings.Contains(s.Trouble, "no session") || s.Topology != "bgp (not known yet)" {
		t.Errorf("status %+v", s)
	}
	if err := w.d.change(t.Context(), parsed(t, text+"flowlet_gap: 1ms\n")); err != nil {
		t.Errorf("a reload meanwhile: %v", err)
	}
	l.t, l.err = leafSpine(t, 2, 2), nil
	w.d.relearn(w.now)
	w.now = w.now.Add(2 * retryAfter)
	w.d.reconcile(t.Context(), w.now)
	if what := w.wrong(w.d); what != "" || !w.d.working || w.d.snapshot().Topology != "bgp (2 racks, 2 bouncing switches)" {
		t.Errorf("%s, working %t, %+v\n%s", what, w.d.working, w.d.snapshot(), w.log.String())
	}
}

// What switches withdraw is out of use at once and, when it comes back, in use at once. When
// they tell nothing any more, what they told holds.
func TestLearn_withdrawals(t *testing.T) {
	l := &told{t: leafSpine(t, 3, 4)}
	w, _ := newLearner(t, l)
	base := w.d.topology
	for _, c := range []struct {
		t    *topology.Topology
		err  error
		want []string
	}{
		{t: leafSpine(t, 3, 4, "e1-s2"), want: []string{"e1-s2"}},
		{t: leafSpine(t, 3, 4, "e1-s2", "e2-s3"), want: []string{"e1-s2", "e2-s3"}},
		{err: fmt.Errorf("%w: no session", learn.ErrUnlearned), want: []string{"e1-s2", "e2-s3"}},
		{t: leafSpine(t, 3, 4, "e0-s1"), want: []string{"e0-s1", "e1-s1", "e2-s1"}}, // no way up to it
		{t: leafSpine(t, 3, 4)},
	} {
		if l.err = c.err; c.err == nil {
			l.t = c.t
		}
		w.d.relearn(w.now)
		w.d.hear(t.Context())
		if got := w.downs(); !slices.Equal(slices.Sorted(slices.Values(got)), c.want) {
			t.Errorf("down are %v, want %v", got, c.want)
		}
		if _, same := w.d.topology.Diff(base); !same {
			t.Error("it is another fabric")
		}
		if what := w.wrong(w.d); what != "" {
			t.Error(what)
		}
	}
}

// What is new in the fabric is taken over after a while, once, however often it is told.
func TestLearn_grows(t *testing.T) {
	l := &told{t: leafSpine(t, 2, 2)}
	w, text := newLearner(t, l)
	w.d.hear(t.Context())
	for racks := 3; racks < 6; racks++ {
		l.t = leafSpine(t, racks, 3)
		w.d.relearn(w.now)
		w.now = w.now.Add(bgp.GrowAfter / 4)
		w.d.grow(t.Context(), w.now)
		if n := w.d.config.fabricName(); n != "bgp (2 racks, 2 bouncing switches)" {
			t.Errorf("after %d racks were told of, the fabric is %s", racks, n)
		}
	}
	l.t = leafSpine(t, 5, 3, "e4-s0")
	w.d.relearn(w.now)
	w.now = w.now.Add(bgp.GrowAfter / 4)
	w.d.grow(t.Context(), w.now)
	if n := w.d.config.fabricName(); n != "bgp (5 racks, 3 bouncing switches)" || w.d.reloads != 0 {
		t.Errorf("the fabric is %s, after %d reloads\n%s", n, w.d.reloads, w.log.String())
	}
	for range 3 {
		w.tick()
	}
	if what := w.wrong(w.d); what != "" || !w.d.working {
		t.Errorf("%s, working %t\n%s", what, w.d.working, w.log.String())
	}
	if err := w.d.change(t.Context(), parsed(t, strings.Replace(text, "drb", "rrb", 1))); err != nil {
		t.Errorf("a reload: %v", err)
	}
	if n := w.d.config.fabricName(); n != "bgp (5 racks, 3 bouncing switches)" || w.d.config.Policy != "rrb" {
		t.Errorf("after a reload the fabric is %s, the policy %s", n, w.d.config.Policy)
	}
	if err := w.d.change(t.Context(), parsed(t, strings.Replace(text, "65101", "65102", 1))); err == nil || !strings.Contains(err.Error(), "bgp") {
		t.Errorf("a reload with another neighbor: %v", err)
	}
}

// When the fabric grows, the racks that packets are carried to are carried to by the next
// program from its first packet on, and a family of which nothing is new is left alone.
func TestLearn_growthLeavesTheRestAlone(t *testing.T) {
	l := &told{t: leafSpine(t, 3, 2), six: leafSpineTo(t, "2001:db8::2", 3, 2)}
	w, _ := newLearner(t, l, "mode: offload\nresequence: true\n")
	f := w.followers[0]
	f.proved, f.proved6 = f.all, f.all6
	f.say()
	w.d.hear(t.Context())
	before := w.program.carried()
	if len(before) != 4 {
		t.Fatalf("carried are %v", before)
	}
	grow := func(what string) {
		t.Helper()
		w.d.relearn(w.now)
		w.now = w.now.Add(bgp.GrowMost)
		w.d.grow(t.Context(), w.now)
		w.d.hear(t.Context())
		if wrong := w.wrong(w.d); wrong != "" || w.followers[0] != f {
			t.Errorf("%s: %s, the follower goes on: %t\n%s", what, wrong, w.followers[0] == f, w.log.String())
		}
		for _, rack := range before {
			if !slices.Contains(w.program.started, rack) || !w.program.carries(rack) {
				t.Errorf("%s: %v goes plain: carried from the start on are %v", what, rack, w.program.started)
			}
		}
	}
	l.t, l.six = leafSpine(t, 4, 3), leafSpineTo(t, "2001:db8::2", 4, 3)
	grow("a rack and a spine are new")
	if n := w.d.config.fabricName(); n != "bgp (4 racks, 3 bouncing switches)" {
		t.Errorf("the fabric is %s", n)
	}
	if s, err := w.d.sprayed(w.program); err != nil || s.Seen != 2 {
		t.Errorf("two programs have seen a packet each, and the status says %d, %v", s.Seen, err)
	}
	four, receiver := w.d.topology, w.receivers[0].topology
	l.six = leafSpineTo(t, "2001:db8::2", 5, 3)
	grow("IPv6 alone is new")
	if w.d.topology != four || w.receivers[0].topology != receiver || f.topology != l.t {
		t.Error("IPv4 has changed with IPv6")
	}
	six := w.d.six.topology
	l.t = leafSpine(t, 5, 3, "e2-s1")
	grow("IPv4 alone is new")
	if w.d.six.topology != six {
		t.Error("IPv6 has changed with IPv4")
	}
	if got := w.downs(); len(got) != 0 { // it is not in the new fabric
		t.Errorf("down are %v", got)
	}
	// What cannot be taken over leaves all as it was.
	w.refuse = 1
	l.t = leafSpine(t, 6, 3)
	w.d.relearn(w.now)
	w.now = w.now.Add(bgp.GrowMost)
	w.d.grow(t.Context(), w.now)
	w.refuse = 0
	if n := w.d.config.fabricName(); w.d.working && n != "bgp (5 racks, 3 bouncing switches)" {
		t.Errorf("after an error the fabric is %s\n%s", n, w.log.String())
	}
}

// What is new again and again is held back for longer and longer.
func TestLearn_holdsBackWhatFlaps(t *testing.T) {
	l := &told{t: leafSpine(t, 2, 2)}
	w, _ := newLearner(t, l)
	var took []time.Duration
	for n := range 9 {
		l.t = leafSpine(t, 3+n, 2)
		w.d.relearn(w.now)
		began, fabric := w.now, w.d.config.fabric
		for w.d.config.fabric == fabric {
			w.now = w.now.Add(100 * time.Millisecond)
			w.d.grow(t.Context(), w.now)
		}
		took = append(took, w.now.Sub(began).Truncate(time.Second))
	}
	if want := []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9, 32e9, 60e9, 60e9, 60e9}; !slices.Equal(took, want) {
		t.Errorf("held back for %v, want %v", took, want)
	}
	w.now = w.now.Add(2 * bgp.GrowMost)
	if got := w.d.growth.Hold(w.now); got != bgp.GrowAfter {
		t.Errorf("after a quiet time held back for %v", got)
	}
}

// What is missing for BGP is named with its key.
func TestParse_bgp(t *testing.T) {
	for text, want := range map[string]string{
		"topology: bgp\n":                        "bgp.as: is missing",
		"topology: bgp\nbgp: {as: 4200000001}\n": "bgp.neighbors: is empty",
		"topology: bgp\nbgp: {as: 4294967296, neighbors: [10.0.0.1=65101]}\n":                       "bgp.as",
		"topology: bgp\nbgp: {as: 1, neighbors: [10.0.0.1]}\n":                                      "bgp.neighbors[0]",
		"topology: bgp\nbgp: {as: 1, neighbors: [10.0.0.1=65101], password_file: /nonexistent/x}\n": "bgp.password_file",
		"topology: bgp\nencapsulation: [srv6]\nbgp: {as: 1, neighbors: [10.0.0.1=65101]}\n":         "encapsulation: srv6 with topology: bgp needs bgp.sid_block",
		"topology: bgp\nbgp: {as: 1, neighbors: [10.0.0.1=65101], sid_block: \"fcbb::/16\"}\n":      "bgp.sid_block: is \"fcbb::/16\", must be a block of IPv6 of 32 bits",
		"topology: bgp\nbgp: {as: 1, neighbors: [10.0.0.1=65101], sid_block: 10.0.0.0/32}\n":        "bgp.sid_block",
		"topology: bgp\nbgp: {as: 1, neighbors: [10.0.0.1=65101, 10.0.0.1=0]}\n":                    "bgp.neighbors[1]",
		"topology: bgp\nbgp: {as: 1, neighbors: [10.0.0.1=65101], password: secret}\n":              "unknown key",
		"topology: /nonexistent/graph.yaml\n":                                                       "no such file",
	} {
		if _, err := parse([]byte(text), "host.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
