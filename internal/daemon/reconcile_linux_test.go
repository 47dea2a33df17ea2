package daemon

import (
	"strings"
	"testing"
	"time"

	"weft/internal/hostprog"
)

// What others change is noticed and told of, each time by the event that shows it; what
// cannot be mended takes weft out of the way, or is told as trouble until it is right again.
func TestReconcile_whatOthersChange(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(w *world)
		glance  bool // looking at what costs little is enough
		says    string
		away    bool
		trouble string
		restore func(w *world)
	}{
		{name: "a setting", change: func(w *world) { w.unset = []string{"a setting was wrong"} }, glance: true, says: "repaired: a setting was wrong"},
		{name: "a route", change: func(w *world) { w.lost = []string{"a route"} }, says: "repaired: a route"},
		{name: "the spray program", change: func(w *world) { w.program.detached = true }, glance: true, says: "repaired: the program was missing"},
		{name: "the steer program", change: func(w *world) { w.receivers[0].detached = true }, glance: true, says: "repaired: the steering was missing"},
		{name: "the uplink's name", change: func(w *world) { w.fakeKernel.name = "up9" }, says: "uplink p0 is now called up9"},
		{name: "the uplink goes", change: func(w *world) { w.absent = true }, says: "out of the way", away: true, restore: func(w *world) { w.absent = false }},
		{name: "the uplink is another device", change: func(w *world) { w.index++ }, says: "out of the way", away: true},
		{name: "the uplink is down", change: func(w *world) { w.down = true }, trouble: "uplink p0 is down", restore: func(w *world) { w.down = false }},
		{name: "the address", change: func(w *world) { w.moved = true }, trouble: "has not its address 10.0.0.2", restore: func(w *world) { w.moved = false }},
		{name: "the MTU", change: func(w *world) { w.mtu = 1400 }, says: "the MTU of p0 is 1400 now, and was 1500", away: true},
		{name: "the dataplane", change: func(w *world) { w.d.receiverEnded() }, says: "what moves packets has ended: the TUN is gone", away: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1)
			look := func() {
				w.now = w.now.Add(2 * retryAfter)
				if c.glance {
					w.d.glance(w.now)
				} else {
					w.d.reconcile(t.Context(), w.now)
				}
			}
			look()
			before := len(w.log.String())
			c.change(w)
			if !strings.HasPrefix(c.name, "the dataplane") {
				look()
			}
			if log := w.log.String()[before:]; !strings.Contains(log, c.says) {
				t.Errorf("says\n%s\nwant %q", log, c.says)
			}
			s := w.d.snapshot()
			if (s.State == StateAway) != c.away || !strings.Contains(s.Trouble, c.trouble) || c.trouble == "" && !c.away && s.Trouble != "" {
				t.Errorf("state %q, trouble %q; want away %t, trouble %q", s.State, s.Trouble, c.away, c.trouble)
			}
			if name := w.uplink().Name; c.says != "" && !c.away && w.d.place.uplink.Name != name {
				t.Errorf("goes on with uplink %s, which is %s", w.d.place.uplink.Name, name)
			}
			if c.restore != nil {
				c.restore(w)
			}
			for range 3 {
				w.tick()
			}
			if what := w.wrong(w.d); what != "" || !w.d.working || w.d.trouble.why != "" {
				t.Errorf("afterwards: %s, working %t, trouble %q\n%s", what, w.d.working, w.d.trouble.why, w.log.String())
			}
		})
	}
}

// A daemon whose packets nobody moves any more does not tell the watchdog that it lives.
func TestAlive_goesByWhatMovesPackets(t *testing.T) {
	w := newWorld(t, 1)
	if !w.d.alive(w.now) {
		t.Error("not alive from the start")
	}
	w.receivers[0].hangs = true
	if w.d.alive(w.now) || !strings.Contains(w.log.String(), "does not show that it lives") {
		t.Errorf("alive while the dataplane hangs:\n%s", w.log.String())
	}
	w.d.takeAway("for this test")
	if !w.d.alive(w.now) {
		t.Error("not alive out of the way, where nothing moves packets")
	}
}

// Either direction that hangs makes a receiver dead.
func TestHostReceiver_alive(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		in, out time.Duration // silent for
		alive   bool
	}{{0, 0, true}, {hung - time.Second, 0, true}, {hung + time.Second, 0, false}, {0, hung + time.Second, false}} {
		var r hostReceiver
		r.in.Store(int64(now.Add(-c.in).Sub(began)))
		r.out.Store(int64(now.Add(-c.out).Sub(began)))
		if got := r.alive(now); got != c.alive {
			t.Errorf("silent for %v and %v: alive %t", c.in, c.out, got)
		}
	}
}

// The program at the uplink begins plain, and goes plain without a daemon, unless the
// configuration requires the carrier.
func TestSpray_beginsAndEndsPlain(t *testing.T) {
	w := newWorld(t, 1)
	for text, want := range map[string]hostprog.SprayConfig{
		"policy: drb\n":                             {StartPlain: true, Patience: hostprog.SprayPatience},
		"policy: drb\nrequire: true\n":              {Require: true},
		"policy: drb\nfailures:\n  probes: false\n": {Patience: hostprog.SprayPatience},
	} {
		c := parsed(t, text)
		got := c.spray(w.d.place, c.fabric, nil)
		if got.StartPlain != want.StartPlain || got.Patience != want.Patience || got.Require != want.Require {
			t.Errorf("%q: plain at first %t, patience %v, required %t; want %t, %v, %t", text,
				got.StartPlain, got.Patience, got.Require, want.StartPlain, want.Patience, want.Require)
		}
	}
}
