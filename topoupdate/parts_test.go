package topoupdate

import (
	"math/rand/v2"
	"testing"
	"time"

	"weft/topology"
)

func topologyNode(n int) topology.NodeID { return topology.NodeID(n) }

// Against a set that remembers everything.
func TestReplayWindow_takesNothingTwice(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		var w ReplayWindow
		seen, high := map[uint64]bool{}, uint64(0)
		for range 500 {
			n := high + uint64(r.IntN(100))
			n -= min(n, uint64(r.IntN(100)))
			if r.IntN(50) == 0 {
				n += 1000
			}
			want := !seen[n] && (len(seen) == 0 || n+64 > high)
			if got := w.Fresh(n); got != want {
				t.Fatalf("fresh(%d) = %v, the highest being %d, seen %v", n, got, high, seen[n])
			}
			if want {
				w.Mark(n)
				seen[n] = true
				high = max(high, n)
			}
		}
	}
}

// A link that flaps is down at once each time, and up only after it has been well
// for a time that grows up to a bound and is forgotten.
func TestDamped_upTakesLongerEachTime(t *testing.T) {
	d := Damping{Hold: 10, Max: 40, Forget: 1000}
	var l damped
	now := time.Duration(5)
	for i, want := range []time.Duration{10, 20, 40, 40} {
		if !l.set(false, &d, now) || !l.down {
			t.Fatalf("failure %d is not reported", i)
		}
		now += 3
		if l.set(true, &d, now) || !l.down || l.next() != now+want {
			t.Fatalf("failure %d: up again at %v, want after %v", i, l.next(), want)
		}
		if l.expire(now+want-1) || !l.expire(now+want) || l.down || l.next() != never {
			t.Fatalf("failure %d: is not up after %v", i, want)
		}
		now += want
	}
	l.set(false, &d, now)
	l.set(true, &d, now)
	l.set(false, &d, now+39) // a break within the hold begins it anew
	l.set(true, &d, now+39)
	if l.expire(now+40) || l.next() != now+79 {
		t.Errorf("a hold was not begun anew: up at %v", l.next()-now)
	}
	l.expire(now + 79)
	now += 79 + 1000
	l.set(false, &d, now)
	if l.set(true, &d, now); l.next() != now+10 {
		t.Errorf("after Forget, up after %v", l.next()-now)
	}
}

func TestDamped_negativeHoldDampsNothing(t *testing.T) {
	d := Damping{Hold: -1}
	if err := d.setDefaults(); err != nil {
		t.Fatal(err)
	}
	var l damped
	for now := range time.Duration(5) {
		if !l.set(false, &d, now) || !l.set(true, &d, now) || l.down {
			t.Fatalf("at %d: %+v", now, l)
		}
	}
}

// Whatever entries come in whatever order, the snapshot is what the records say,
// and another one only if a link's state differs.
func TestDatabase_snapshotIsWhatRecordsSay(t *testing.T) {
	for _, spec := range specs {
		base := mustParse(t, spec)
		base = base.Without(topology.LinkID(base.NumLinks() - 1))
		f, err := newFabric(base)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, 3))
		d := newDatabase(f, time.Second)
		now, seq := time.Duration(0), uint32(0)
		for step := range 500 {
			now += time.Duration(r.Int64N(int64(100 * time.Millisecond)))
			before := d.topology()
			for range r.IntN(3) {
				seq++
				index := r.IntN(f.numSwitches())
				ports := f.ports[f.layer(d.id(index))]
				down := make([]byte, (ports+7)/8)
				for range r.IntN(3) {
					p := r.IntN(ports)
					down[p/8] |= 1 << (p % 8)
				}
				c := claim{originator: d.id(index), version: version{1, seq}, bitmap: down}
				if kind := d.judge(&c); kind != fresh && kind != changed {
					t.Fatalf("a newer entry is judged %d", kind)
				}
				d.store(&c, 0, now)
				if d.judge(&c) != same {
					t.Fatal("a stored entry is not the same")
				}
			}
			d.expire(now)
			after := d.topology()
			diff, _ := before.Diff(after)
			if (before == after) != (len(diff) == 0) {
				t.Fatalf("%s, step %d: another snapshot, but %d links differ", spec, step, len(diff))
			}
			want := base
			for _, e := range d.entries(now) {
				if e.Age >= time.Second {
					t.Fatalf("an entry of age %v counts", e.Age)
				}
				ports := base.Ports(e.Originator)
				for _, p := range e.Down {
					want = want.Without(ports[p].Link)
				}
			}
			if diff, _ := after.Diff(want); len(diff) > 0 {
				t.Fatalf("%s, step %d: links %v differ from what the records say", spec, step, diff)
			}
		}
	}
}

func TestFabric_layersAsTheTopologyHasThem(t *testing.T) {
	for _, spec := range specs {
		top := mustParse(t, spec)
		f, err := newFabric(top)
		if err != nil {
			t.Fatal(err)
		}
		for n := range top.Nodes() {
			if f.layer(n.ID) != n.Layer || f.isSwitch(n.ID) != (n.Layer != topology.LayerHost) {
				t.Fatalf("%s: %s is of layer %v", spec, n.Name, f.layer(n.ID))
			}
			if n.Layer != topology.LayerHost && f.ports[n.Layer] != len(top.Ports(n.ID)) {
				t.Fatalf("%s: %s has %d ports", spec, n.Name, len(top.Ports(n.ID)))
			}
		}
		for _, id := range []topology.NodeID{-1, topology.NodeID(top.NumNodes())} {
			if f.isSwitch(id) {
				t.Errorf("%s: %d is a switch", spec, id)
			}
		}
	}
}
