package daemon

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/liveness"
	"weft/topoupdate/bgp"
)

// sixes are the IPv6 addresses that the program at the uplink encapsulates packets of.
func sixes(c hostprog.SprayConfig) (list []netip.Addr) {
	for _, a := range c.Addresses {
		if a.Is6() {
			list = append(list, a)
		}
	}
	return list
}

// Each family goes by its own proof and its own news, also over reloads and when the fabric
// changes. IPv4 never changes for IPv6.
func TestSix_eachFamilyByItself(t *testing.T) {
	l := &told{t: leafSpine(t, 3, 4), six: leafSpineTo(t, "2001:db8::2", 3, 4)}
	w, text := newLearner(t, l, "mode: offload\nresequence: true\n")
	right := func(what string) {
		t.Helper()
		w.d.hear(t.Context())
		if wrong := w.wrong(w.d); wrong != "" || !w.d.working {
			t.Errorf("%s: %s, working %t\n%s", what, wrong, w.d.working, w.log.String())
		}
	}
	rack6 := netip.MustParsePrefix("2001:db8:0:1::/64")
	carried := func(what string, four, six bool) {
		t.Helper()
		right(what)
		if p := w.program; p.carries(netip.MustParsePrefix("10.0.1.0/24")) != four || p.carries(rack6) != six {
			t.Errorf("%s: IPv4 is carried: %t, IPv6: %t", what, p.carries(netip.MustParsePrefix("10.0.1.0/24")), p.carries(rack6))
		}
	}
	if got := sixes(w.program.config); !slices.Equal(got, []netip.Addr{netip.MustParseAddr("2001:db8::2")}) {
		t.Errorf("the program has %v", got)
	}
	carried("at the beginning", false, false)
	f := w.followers[0]
	f.proved = f.all
	f.say()
	carried("IPv4 is proved", true, false)
	f.proved6 = f.all6
	f.say()
	carried("so is IPv6", true, true)
	if !strings.Contains(w.log.String(), "carried by IPv6 in IPv6") {
		t.Errorf("it says\n%s", w.log.String())
	}
	f.proved = f.none
	f.say()
	carried("IPv4 is not any more", false, true)
	l.six = leafSpineTo(t, "2001:db8::2", 3, 4, "e1-s2")
	w.d.relearn(w.now)
	right("a link has no IPv6")
	if got := w.program.six.Down(); len(got) != 1 || len(w.d.topology.Down()) != 0 {
		t.Errorf("of IPv6 %v are down, of IPv4 %v", got, w.d.topology.Down())
	}
	if err := w.d.change(t.Context(), parsed(t, strings.Replace(text, "drb", "rrb", 1))); err != nil {
		t.Fatal(err)
	}
	carried("after a reload", false, true)
	if err := w.d.change(t.Context(), parsed(t, strings.Replace(text, "drb", "presto", 1)+"receivers_resequence: false\n")); err != nil {
		t.Fatal(err)
	}
	right("under a policy whose flowcells nobody puts in order")
	if got := sixes(w.program.config); len(got) > 0 {
		t.Errorf("the program has %v", got)
	}
	if err := w.d.change(t.Context(), parsed(t, text)); err != nil {
		t.Fatal(err)
	}
	carried("back again nothing is proved", false, false)
	l.six = nil
	w.d.relearn(w.now)
	w.now = w.now.Add(bgp.GrowAfter)
	w.d.grow(t.Context(), w.now)
	right("the fabric has no IPv6 any more")
	if got := sixes(w.program.config); len(got) > 0 || w.d.snapshot().Address6 != "" {
		t.Errorf("the program has %v, the status %q", got, w.d.snapshot().Address6)
	}
}

// In mode gateway IPv6 is carried under every policy, by the program where that cuts, and by
// the dataplane behind the TUN under the others; what arrives is put in order. Each family
// goes plain by itself.
func TestSix_gateway(t *testing.T) {
	own, rack6 := netip.MustParseAddr("2001:db8::2"), netip.MustParsePrefix("2001:db8:0:1::/64")
	l := &told{t: leafSpine(t, 3, 4), six: leafSpineTo(t, own.String(), 3, 4)}
	w, text := newLearner(t, l, "mode: gateway\n")
	right := func(what string) {
		t.Helper()
		w.d.hear(t.Context())
		if wrong := w.wrong(w.d); wrong != "" || !w.d.working {
			t.Errorf("%s: %s, working %t\n%s", what, wrong, w.d.working, w.log.String())
		}
	}
	edge, _ := l.six.RackAt(rack6.Addr())
	for _, c := range []struct {
		policy  string
		diverts bool
	}{{"drb", true}, {"presto", false}, {"luopan", false}, {"letflow", true}, {"rand", false}, {"ecmp", true}, {"reps", true}, {"conga", true}, {"flowcell-drb", false}} {
		if err := w.d.change(t.Context(), parsed(t, strings.Replace(text, "drb", c.policy, 1))); err != nil {
			t.Fatal(err)
		}
		for _, proved := range []bool{false, true} {
			f := w.followers[0]
			f.proved6 = map[bool]*liveness.Carriage{false: f.none6, true: f.all6}[proved]
			f.say()
			right(c.policy)
			p, r := w.program, w.receivers[0]
			if !slices.Contains(p.config.Addresses, own) || slices.Contains(p.config.Cut, own) == c.diverts || p.carries(rack6) != proved {
				t.Errorf("%s, proved %t: the program has %v, cuts %v, carries %t", c.policy, proved, p.config.Addresses, p.config.Cut, p.carries(rack6))
			}
			if r.six != own || r.carriage6.Plain(edge) == proved || r.carriage == nil || r.carriage.Used() {
				t.Errorf("%s, proved %t: the dataplane has %v, IPv6 plain %t, IPv4 used %t", c.policy, proved, r.six, r.carriage6.Plain(edge), r.carriage.Used())
			}
		}
		into := func(r hostsetup.Rule) bool {
			return r.IPv6 && r.Table == hostsetup.TableIn && r.Protocol == 6
		}
		if w.diverted != c.diverts || !slices.ContainsFunc(w.plan.Divert, into) {
			t.Errorf("%s: diverted %t by %+v", c.policy, w.diverted, w.plan.Divert)
		}
	}
	l.six = leafSpineTo(t, own.String(), 3, 4, "e1-s2")
	w.d.relearn(w.now)
	right("a link has no IPv6")
	if got := w.receivers[0].topology6.Down(); len(got) != 1 || len(w.d.topology.Down()) != 0 {
		t.Errorf("of IPv6 %v are down, of IPv4 %v", got, w.d.topology.Down())
	}
}

// In mode offload flowcells are carried if receivers restore their order.
func TestSix_receiversResequence(t *testing.T) {
	l := &told{t: leafSpine(t, 3, 4), six: leafSpineTo(t, "2001:db8::2", 3, 4)}
	w, text := newLearner(t, l, "mode: offload\nresequence: true\n")
	for more, want := range map[string]int{"receivers_resequence: false\n": 0, "": 1} {
		if err := w.d.change(t.Context(), parsed(t, strings.Replace(text, "drb", "presto", 1)+more)); err != nil {
			t.Fatal(err)
		}
		if got := sixes(w.program.config); len(got) != want {
			t.Errorf("%q: the program has %v", more, got)
		}
	}
}

// Where the switches tell of IPv6 later than of IPv4, what receives is made anew.
func TestSix_comesLater(t *testing.T) {
	l := &told{t: leafSpine(t, 3, 4)}
	w, _ := newLearner(t, l, "mode: gateway\n")
	look := func(what string, want netip.Addr) {
		t.Helper()
		w.d.relearn(w.now)
		w.now = w.now.Add(bgp.GrowAfter)
		w.d.grow(t.Context(), w.now)
		w.d.reconcile(t.Context(), w.now)
		w.d.hear(t.Context())
		if wrong := w.wrong(w.d); wrong != "" || !w.d.working {
			t.Fatalf("%s: %s, working %t\n%s", what, wrong, w.d.working, w.log.String())
		}
		if got := w.receivers[0].six; got != want {
			t.Errorf("%s: the order is restored of what arrives to %v, want %v", what, got, want)
		}
	}
	own := netip.MustParseAddr("2001:db8::2")
	look("without IPv6", netip.Addr{})
	l.six = leafSpineTo(t, own.String(), 3, 4)
	look("with IPv6", own)
	if n := strings.Count(w.log.String(), "out of the way, "); n != 1 {
		t.Errorf("out of the way %d times:\n%s", n, w.log.String())
	}
	r := w.receivers[0]
	l.six = nil
	look("without it again", own)
	l.six = leafSpineTo(t, own.String(), 3, 4)
	look("with it again", own)
	if w.receivers[0] != r {
		t.Error("what receives was made anew when nothing changed for it")
	}
}
