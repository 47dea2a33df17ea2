package daemon

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// Super-segments are cut late where a packet is a small unit for the slowest link.
func TestLateCut(t *testing.T) {
	const gigabit = "topology: fat-tree:k=4,host-rate=10000,fabric-rate=1000,core-rate=10000\n"
	for text, want := range map[string]*LateCutStatus{
		"policy: drb\n":                       {Active: true}, // nobody knows the rate
		fast + "policy: drb\n":                {Active: true},
		gigabit + "policy: drb\n":             {Why: "on links of 1000 Mbit/s TCP cuts itself, so that it hears of what its queue drops"},
		slow + "policy: rrb\n":                {Why: "on links of 100 Mbit/s TCP cuts itself, so that it hears of what its queue drops"},
		slow:                                  {Why: "on links of 100 Mbit/s TCP cuts itself, so that it hears of what its queue drops"},
		fast:                                  nil, // flowcells
		"policy: ecmp\n":                      nil,
		fast + "policy: drb\nmode: gateway\n": nil,
	} {
		w := newAutoWorld(t, text)
		if got := w.d.snapshot().LateCut; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: status %+v, want %+v", text, got, want)
		}
		if c := w.program.config; c.CutLate != (want != nil && want.Active) || c.PerPacketTCP != (want != nil) {
			t.Errorf("%q: late %t, packets %t, status %+v", text, c.CutLate, c.PerPacketTCP, want)
		}
	}
}

// Why super-segments are not cut late is logged once, also when that changes.
func TestLateCut_tells(t *testing.T) {
	w := newAutoWorld(t, "policy: drb\n")
	const words = "TCP cuts super-segments into packets itself, which costs more processor time: no macvlan"
	for i := range 3 {
		if n := strings.Count(w.log.String(), words); n != i {
			t.Errorf("told %d times, want %d", n, i)
		}
		for range 2 {
			w.uncut = "no macvlan"
			w.d.glance(w.now)
		}
		if s := w.d.snapshot().LateCut; s == nil || s.Active || s.Why != "no macvlan" {
			t.Errorf("status %+v", s)
		}
		w.uncut = ""
		w.d.reconcile(t.Context(), w.now.Add(time.Minute))
	}
}
