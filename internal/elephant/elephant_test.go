package elephant

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func flow(n int) Flow {
	return Flow{Src: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n % 4)}), uint16(n)),
		Dst: netip.MustParseAddrPort("10.1.0.2:80"), Protocol: []uint8{TCP, UDP}[n%2]}
}

func mustDetector(t testing.TB, c Config) *Detector {
	t.Helper()
	d, err := NewDetector(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestKey_isTheFlows(t *testing.T) {
	for _, f := range []Flow{flow(1), flow(2), {netip.MustParseAddrPort("[fd00::1]:5"), netip.MustParseAddrPort("[fd00::2]:65535"), UDP}} {
		if k := f.Key(); k.Flow() != f || f.Check() != nil {
			t.Errorf("%v: %+v is of %v; %v", f, k, k.Flow(), f.Check())
		}
	}
	for _, f := range []Flow{{}, {netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("[fd00::2]:1"), TCP}, {flow(1).Src, flow(1).Dst, 1},
		{netip.MustParseAddrPort("[::ffff:10.0.0.1]:1"), netip.MustParseAddrPort("[::ffff:10.0.0.2]:1"), TCP}} {
		if f.Check() == nil {
			t.Errorf("%v is good", f)
		}
	}
}

// A flow that is printed is read again, and what is no flow is not.
func TestParseFlow(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	at := func(six bool) netip.AddrPort {
		var a [16]byte
		for i := range a {
			a[i] = byte(rng.Uint32())
		}
		if six {
			return netip.AddrPortFrom(netip.AddrFrom16(a), uint16(rng.Uint32()))
		}
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a[:4])), uint16(rng.Uint32()))
	}
	for n := range 256 * 4 {
		f := Flow{Src: at(n%2 > 0), Dst: at(n%2 > 0), Protocol: uint8(n / 4)}
		if got, err := ParseFlow(f.String()); got != f || err != nil {
			t.Errorf("%v: %v, %v", f, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "must be", "tcp nonsense": "must be", "tcp 10.0.0.2:1 > 10.1.0.2:2 > 10.2.0.2:3": "must be", "tcp 10.0.0.2:1 < 10.1.0.2:2": "must be",
		"tcp  10.0.0.2:1 > 10.1.0.2:2": "must be", "sctp 10.0.0.2:1 > 10.1.0.2:2": "protocol", "256 10.0.0.2:1 > 10.1.0.2:2": "protocol",
		"tcp 10.0.0.2 > 10.1.0.2:2": "source", "udp 10.0.0.2:1 > 10.1.0.2:65536": "destination",
	} {
		if f, err := ParseFlow(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", text, f, err, want)
		}
	}
}

// The elephants are those of a model that knows what each flow has sent and when the program forgot
// it: never one that sent less than the share, and every one that was not forgotten meanwhile.
func TestDetector_findsThoseAboveTheShare(t *testing.T) {
	const link = 1e9
	rng := rand.New(rand.NewPCG(1, 2))
	d := mustDetector(t, Config{Link: func(a netip.Addr) float64 {
		if a == flow(3).Src.Addr() {
			return 0 // a host of another link
		}
		return link
	}})
	type state struct {
		counted, sent uint64 // since it was begun to be counted; since the latest reading
		forgotten     bool   // since then
	}
	flows := make([]state, 40)
	now := time.Duration(0)
	found := 0
	for reading := range 200 {
		took := time.Duration(1+rng.IntN(3000)) * time.Millisecond
		now += took
		var counts []Count
		for n := range flows {
			f := &flows[n]
			f.sent, f.forgotten = 0, false
			for range rng.IntN(4) {
				if rng.IntN(10) == 0 {
					f.counted, f.forgotten = 0, true
				}
				bytes := uint64(rng.Int64N(int64(took.Seconds() * link / 8 / 15)))
				f.sent, f.counted = f.sent+bytes, f.counted+bytes
			}
			if f.counted > 0 {
				counts = append(counts, Count{flow(n).Key(), f.counted})
			}
		}
		got := d.Read(now, counts)
		if reading == 0 {
			if len(got) > 0 {
				t.Fatalf("%v by the first reading", got)
			}
			continue
		}
		if !slices.IsSortedFunc(got, func(a, b Rate) int { return int(b.Bits - a.Bits) }) {
			t.Fatalf("not the largest first: %v", got)
		}
		for n, f := range flows {
			rate := float64(f.sent) * 8 / took.Seconds()
			i := slices.IndexFunc(got, func(r Rate) bool { return r.Flow == flow(n) })
			large := rate > link/10 && n%4 != 3
			switch {
			case i >= 0 && !large:
				t.Fatalf("%v of %g bit/s is reported with %g", flow(n), rate, got[i].Bits)
			case i < 0 && large && !f.forgotten:
				t.Fatalf("%v of %g bit/s is not reported", flow(n), rate)
			case i >= 0 && !f.forgotten && fmt.Sprintf("%.3e", got[i].Bits) != fmt.Sprintf("%.3e", min(rate, link)):
				t.Fatalf("%v of %g bit/s is reported with %g", flow(n), rate, got[i].Bits)
			case i >= 0:
				found++
			}
		}
		foreign := 0
		for n, f := range flows {
			if n%4 == 3 && f.sent > 0 && f.counted > 0 {
				foreign++
			}
		}
		if s := d.Stats(); s.Foreign != foreign || s.Flows != len(counts) || s.Elephants != len(got) || s.Readings != uint64(reading) {
			t.Fatalf("%+v of %d flows, %d elephants", s, len(counts), len(got))
		}
	}
	if found == 0 {
		t.Error("there was no elephant")
	}
}

// More elephants than a report takes: the largest are in it, and the others counted.
func TestDetector_leavesTheSmallestOut(t *testing.T) {
	d := mustDetector(t, Config{Max: 3, Link: func(netip.Addr) float64 { return 8e6 }})
	d.Read(time.Second, nil)
	var counts []Count
	for n := range 10 {
		counts = append(counts, Count{flow(n).Key(), uint64(100_001 + n*1000)})
	}
	got := d.Read(2*time.Second, append(counts, counts[0]))
	want := []Rate{{flow(9), 8 * 109_001}, {flow(8), 8 * 108_001}, {flow(7), 8 * 107_001}}
	if s := d.Stats(); !slices.Equal(got, want) || s.LeftOut != 7 {
		t.Errorf("%v, %+v, want %v", got, s, want)
	}
	if got := d.Read(2*time.Second, counts); got != nil {
		t.Errorf("%v by a reading in no time", got)
	}
	if got := d.Read(3*time.Second, counts); len(got) > 0 {
		t.Errorf("%v have sent nothing since", got)
	}
	// Nobody sends more than the link carries: the clock was late.
	if got := d.Read(3*time.Second+1, []Count{{flow(1).Key(), 1 << 60}}); len(got) != 1 || got[0].Bits != 8e6 {
		t.Errorf("%v", got)
	}
}

func TestConfig_check(t *testing.T) {
	link := func(netip.Addr) float64 { return 1 }
	for _, c := range []Config{{}, {Share: 1, Link: link}, {Share: -1, Link: link}, {Max: -1, Link: link}, {Max: MaxCounted + 1, Link: link}} {
		if _, err := NewDetector(c); err == nil {
			t.Errorf("%+v is good", c)
		}
	}
}

func TestPins_areBoundedAndExpire(t *testing.T) {
	var p Pins
	via := netip.MustParseAddr("10.4.1.1")
	for n := range MaxPins {
		if err := p.Set(0, flow(n), 0, via, time.Duration(1+n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Set(0, flow(MaxPins), 0, via, 1); err == nil || p.Len() != MaxPins {
		t.Errorf("%d pins, %v", p.Len(), err)
	}
	if err := p.Set(0, flow(7), 1, via, time.Second); err != nil { // one that is there is renewed
		t.Error(err)
	}
	if err := p.Set(10, flow(MaxPins), 0, via, 1); err != nil { // the first ten have expired but for one
		t.Error(err)
	}
	if s := p.Stats(); s != (PinStats{Set: MaxPins + 2, Expired: 9, Refused: 1}) || p.Len() != MaxPins-8 {
		t.Errorf("%+v, %d pins", s, p.Len())
	}
	p.Drop(flow(7))
	if !p.Expire(MaxPins+1) || p.Expire(MaxPins+1) || p.Len() != 0 || len(p.List()) != 0 {
		t.Errorf("%d pins are left: %v", p.Len(), p.List())
	}
	for _, err := range []error{p.Set(0, flow(1), -1, via, 1), p.Set(0, flow(1), 0, netip.Addr{}, 1), p.Set(0, flow(1), 0, via, 0),
		p.Set(0, flow(1), 0, via, MaxValid+1), p.Set(0, Flow{}, 0, via, 1)} {
		if err == nil {
			t.Error("a pin that is no good was set")
		}
	}
	if p.Set(0, flow(2), 0, via, 2) != nil || p.Set(0, flow(1), 3, via, 1) != nil {
		t.Error("refused")
	}
	if got, want := p.List(), []Pin{{flow(1), 3, via, 1}, {flow(2), 0, via, 2}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
