package hostprog

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/conga"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// A mark counts only if its sender has seen what was sent to it; all are taken off, and ECN stays.
func TestSpray_congaHeedsOnlyWhoSees(t *testing.T) {
	r := newCongaRun(t)
	const isn = 1 << 30
	r.leaves(t, r.data(80, isn, 1000, 0x18))
	for i, c := range []struct {
		port   byte
		ack    uint32
		counts bool
	}{{80, isn + 1000, true}, {80, isn, true}, {80, isn + 1002, false}, {80, isn - 1, false}, {80, 5, false}, {81, isn + 1000, false}} {
		before := r.stats(t)
		got := r.arrives(t, c.port, c.ack, conga.Mark{Feedback: true, Tag: 2, Metric: uint8(i + 1)})
		after := r.stats(t)
		if got[1] != 1 || kerneltest.OnesSum(got[:20]) != 0xffff {
			t.Errorf("%+v: arrived as\n%s", c, dump(got[:40]))
		}
		if after.Marked != before.Marked+1 || (after.UnprovenMarks == before.UnprovenMarks) != c.counts {
			t.Errorf("%+v: %d marks, %d unproven, before %d, %d", c, after.Marked, after.UnprovenMarks, before.Marked, before.UnprovenMarks)
		}
	}
}

// seen is what internal/dataplane's flights know of a flow, by their rules.
type seen struct{ low, una, next uint32 }

const overtaken = 1 << 20

func (f *seen) sent(seq, payload uint32, fresh bool) {
	if end := seq + payload; fresh {
		*f = seen{seq, seq, end}
	} else if int32(end-f.next) > 0 {
		f.next = end
	}
}

func (f *seen) acknowledged(ack uint32) bool {
	if ack-f.low > f.next-f.low {
		return false
	}
	if int32(ack-f.una) > 0 {
		f.una = ack
		f.low = max(f.una-f.low, overtaken) - overtaken + f.low
	}
	return true
}

// counts has a marked packet arrive, and reports whether it counts.
func (r *congaRun) counts(t *testing.T, port byte, ack uint32) bool {
	t.Helper()
	before := r.stats(t)
	r.arrives(t, port, ack, conga.Mark{Feedback: true, Tag: 2, Metric: 7})
	after := r.stats(t)
	if after.Marked != before.Marked+1 {
		t.Fatalf("%d marks, %d before", after.Marked, before.Marked)
	}
	return after.UnprovenMarks == before.UnprovenMarks
}

// reports is how many tags of any host's paths are reported on.
func (r *congaRun) reports(t *testing.T) (n int) {
	t.Helper()
	if err := r.spray.Reports(func(_ netip.Addr, tags *[conga.Tags]TagLoad) {
		for _, tag := range tags {
			if tag.Known {
				n++
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// What proves that a mark's sender sees is what proves it to flights, number for number: every
// acknowledgement counts there, whether or not it has a mark, also one that comes late.
func TestSpray_congaProofsAsFlights(t *testing.T) {
	r := newCongaRun(t)
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	flows := make([]seen, 4)
	proven, refused, late, plain := 0, 0, 0, 0
	for i := range 12000 {
		port := byte(i % len(flows))
		f := &flows[port]
		if i < len(flows) {
			seq := rng.Uint32() | 0xfff00000*uint32(i&1) // that wraps
			r.leaves(t, r.data(port, seq, 1000, 0x18))
			f.sent(seq, 1000, true)
			continue
		}
		switch ack := f.una + uint32(rng.Uint64N(uint64(f.next-f.una)+1)); rng.IntN(6) {
		case 0, 1: // data, also behind some that is still on its way through the host
			if f.next-f.una > 8<<20 {
				continue
			}
			seq := f.next + uint32(rng.IntN(300_000))
			r.leaves(t, r.data(port, seq, 1000, 0x18))
			f.sent(seq, 1000, false)
		case 2: // an acknowledgement without a mark
			r.heeds(t, port, ack, 1, 7)
			if !f.acknowledged(ack) {
				t.Fatalf("seed %d, packet %d: the test acknowledges %d of %+v", seed, i, ack, *f)
			}
			plain++
		case 3: // data that is sent again
			r.leaves(t, r.data(port, f.una, int(min(1000, f.next-f.una)), 0x18))
		default:
			switch rng.IntN(6) {
			case 0: // overtaken, or too late
				ack = f.una - rng.Uint32N(2*overtaken)
				late++
			case 1:
				ack = f.low - rng.Uint32N(2)
			case 2: // never sent; a FIN may be behind what the program knows of
				ack = f.next + 2 + rng.Uint32N(1<<31)
			case 3:
				ack = rng.Uint32()
			}
			if ack == f.next+1 {
				continue
			}
			was := *f
			want := f.acknowledged(ack)
			if got := r.counts(t, port, ack); got != want {
				t.Fatalf("seed %d, packet %d: that %d is acknowledged proves %v, want %v: %+v", seed, i, ack, got, want, was)
			}
			if want {
				proven++
			} else {
				refused++
			}
		}
	}
	if proven < 1000 || refused < 1000 || late < 300 || plain < 1000 {
		t.Errorf("%d proofs, %d refused, %d late, %d acknowledgements without a mark", proven, refused, late, plain)
	}
}

// Who knows addresses and ports of a connection but does not see its packets does not get marks
// believed, however much the connection has sent: the other host has no marks in what it sends, or
// does not acknowledge at all by this uplink.
func TestSpray_congaBelievesNoForger(t *testing.T) {
	const flight, guesses, seed = 4 << 20, 5000, 9
	for name, c := range map[string]struct {
		acknowledges bool
		most         int // of guesses: 6 are right if 5 MB are proof, 20 if MOST_PROOF is
	}{"acknowledged": {true, 12}, "never acknowledged": {false, 40}} {
		t.Run(name, func(t *testing.T) {
			r := newCongaRun(t)
			r.leaves(t, r.data(80, 1, 1000, 0x18))
			for seq := uint32(1); seq < 3<<30; seq += 1 << 20 {
				r.leaves(t, r.data(80, seq, 1000, 0x18))
				if c.acknowledges && seq > flight {
					r.heeds(t, 80, seq-flight, 1, 7)
				}
			}
			rng := rand.New(rand.NewPCG(seed, 0))
			before := r.stats(t)
			flows, flow := r.drawing.known(t), flowOf(r.data(80, 1, 1000, 0x18))
			var was flowValue
			if err := flows.Lookup(flow, &was); err != nil {
				t.Fatal(err)
			}
			for range guesses { // each is the first: one that is right leaves less to guess
				if err := flows.Put(flow, &was); err != nil {
					t.Fatal(err)
				}
				r.arrives(t, 80, rng.Uint32(), conga.Mark{Feedback: true, Tag: uint8(rng.IntN(3)), Metric: 7})
			}
			after := r.stats(t)
			believed := guesses - int(after.UnprovenMarks-before.UnprovenMarks)
			if after.Marked-before.Marked != guesses || believed > c.most {
				t.Errorf("seed %d: %d of %d forged marks were believed, %d at most", seed, believed, guesses, c.most)
			}
			if n := r.reports(t); n > believed {
				t.Errorf("seed %d: %d tags are reported on by %d marks", seed, n, believed)
			}
			if !r.counts(t, 80, 3<<30-(1<<20)+1) || r.reports(t) == 0 {
				t.Error("who sees what was sent is not believed")
			}
		})
	}
}

// heeding reports whether marks are taken in at the uplink.
func (s *sprayed) heeding(t *testing.T) (is bool) {
	t.Helper()
	err := s.lab.Do(s.src.ID, func() error {
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		link, err := kernel.Uplink(h, "p0")
		if err != nil {
			return err
		}
		id, err := heedKind.place.Program(h, link)
		is = id != 0
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// While CONGA's program is at the uplink, so is what takes marks in: also if another policy's
// could not take its place. Afterwards it goes, also what a crash has left.
func TestSpray_heedsAsLongAsItInforms(t *testing.T) {
	s := &sprayed{lab: sprayLab(t)}
	hosts := kerneltest.Hosts(s.lab.Config.Topology)
	s.src, s.dst = hosts[0], hosts[len(hosts)-1]
	s.attach(t, s.config(t, "conga"))
	first := s.spray
	failed, o := errors.New("refused by the kernel"), new(Spray)
	if err := s.lab.Do(s.src.ID, func() error {
		return o.open(sprayKind, "p0", func() error {
			link, err := kernel.Uplink(o.handle, "p0")
			if err != nil {
				return err
			}
			return errors.Join(o.load(s.config(t, "drb"), link), failed)
		})
	}); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if mended, err := first.Repair(); err != nil || len(mended) > 0 || !s.heeding(t) {
		t.Errorf("behind an attach that failed: mended %q, %v", mended, err)
	}

	s.attach(t, s.config(t, "drb"))
	if !s.heeding(t) {
		t.Error("another Spray's program is gone while that is open")
	}
	if err := first.Close(); err != nil || s.heeding(t) {
		t.Errorf("marks are still taken in; %v", err)
	}

	s.attach(t, s.config(t, "conga"))
	crashed := s.spray
	crashed.release() // as a crash does
	for _, twin := range crashed.twins {
		twin.release()
	}
	kerneltest.ForgetPrograms()
	if !s.heeding(t) {
		t.Fatal("a crash has left nothing")
	}
	s.attach(t, s.config(t, "drb"))
	if s.heeding(t) {
		t.Error("what a crash has left goes on")
	}
}

// Under other policies the kernel has nothing of CONGA to verify.
func TestSpray_onlyCongaLoadsConga(t *testing.T) {
	spec, err := loadSpray()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{sprayProgWeftSpray: false, sprayProgWeftInform: true} {
		calls := make(map[string]bool)
		for _, ins := range spec.Programs[name].Instructions {
			if ins.IsFunctionReference() {
				calls[ins.Reference()] = true
			}
		}
		for _, f := range []string{"informed_flowlet", "least_congested", "report"} {
			if calls[f] != want {
				t.Errorf("%s: %s is called: %v, want %v", name, f, calls[f], want)
			}
		}
		if calls["flowlet"] == want {
			t.Errorf("%s calls flowlet: %v", name, want)
		}
	}
	for name, p := range spec.Programs {
		for _, ins := range p.Instructions {
			if s := ins.Symbol(); name == sprayProgWeftSpray && (s == "metric" || s == "report") {
				t.Errorf("%s has the function %s", name, s)
			}
		}
	}
}
