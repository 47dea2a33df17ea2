package fabric

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"weft/conga"
)

// enter is what the program does with a packet of so many segments.
func (s *meterState) enter(now, wire, segments uint64) {
	s.drain(now)
	s.fill(now, wire, segments)
}

// fill is enter's part behind the decision of RED.
func (s *meterState) fill(now, wire, segments uint64) {
	one := wire
	if segments > 1 {
		one = wire/segments + 1
	}
	fits := wire
	if room := s.Room - s.Length; fits > room {
		n := uint64(0)
		if segments > 1 {
			n = room / one
		}
		s.Overflow += segments - n
		fits = n * one
	}
	s.Length += fits
	s.Max = max(s.Max, s.queued())
	s.decay(now)
	s.Register = min(s.Register+fits*dreScale, dreMost)
	s.Packets += segments
	s.Bytes += wire
}

func mustMeterState(t *testing.T, p MeterPort) meterState {
	t.Helper()
	p.Name = "p0"
	p, err := p.complete()
	if err != nil {
		t.Fatal(err)
	}
	return p.state()
}

// The queue is thesis Fig. 5.5's in exact numbers, however often it is looked at:
// what is left over of a byte is not lost, or a long busy period would end far
// from the truth.
func TestMeterState_drainsExactly(t *testing.T) {
	for _, rate := range []float64{8000, 20e6, 999_999_937, 1e9, 10e9, 400e9, maxMeterBits} {
		s := mustMeterState(t, MeterPort{RateBits: rate, QueueBytes: 1 << 30})
		seed := uint64(time.Now().UnixNano())
		rng := rand.New(rand.NewPCG(seed, 0))
		exact, now := new(big.Rat), uint64(1e9)
		perNano := big.NewRat(int64(s.Rate), nanosPerSecond)
		s.drain(now)
		for i := range 20_000 {
			n := 60 + rng.Uint64N(1460)
			elapsed := rng.Uint64N(uint64(2.2 * float64(n) / float64(s.Rate) * 1e9))
			now += elapsed
			exact.Sub(exact, new(big.Rat).Mul(perNano, new(big.Rat).SetUint64(elapsed)))
			if exact.Sign() < 0 {
				exact.SetInt64(0)
			}
			exact.Add(exact, new(big.Rat).SetUint64(n))
			s.enter(now, n, 1)
			// Less than a byte has drained and does not count yet.
			if want, _ := exact.Float64(); math.Abs(float64(s.Length)-want) > 1.01 {
				t.Fatalf("%g bit/s, seed %d, packet %d: %d bytes, exactly %v", rate, seed, i, s.Length, want)
			}
		}
		if s.Max == 0 {
			t.Errorf("%g bit/s: never a queue", rate)
		}
	}
}

// What there is no room for does not wait, and what may leave ahead does not either.
func TestMeterState_bounds(t *testing.T) {
	s := mustMeterState(t, MeterPort{RateBits: 8e6, QueueBytes: 10_000, BurstBytes: 3000})
	for range 3 {
		s.enter(1, 1000, 1)
	}
	if s.queued() != 0 || s.Max != 0 {
		t.Errorf("%d bytes of a burst wait", s.queued())
	}
	s.enter(1, 15_000, 10) // 7 of 1,501 bytes fit into 10,000
	if s.queued() != 6*1501 || s.Overflow != 4 {
		t.Errorf("%d bytes wait, %d packets too many", s.queued(), s.Overflow)
	}
	s.enter(1, 1000, 1)
	if s.queued() != 6*1501 || s.Overflow != 5 {
		t.Errorf("%d bytes wait, %d packets too many", s.queued(), s.Overflow)
	}
	s.drain(1 + s.Full)
	if s.Length != 0 {
		t.Errorf("%d bytes are left for good", s.Length)
	}
	s.enter(s.Last-1, 5000, 1) // of another CPU
	if got := s.at(s.Last).Length; got != 2000 {
		t.Errorf("time went back: %d bytes", got)
	}
}

// The metric is X/Cτ in eighths (CONGA §3.2): of an idle port 0, at half load 3
// or 4, at full load 7; and conga's own.
func TestMeterState_estimatesTheLoad(t *testing.T) {
	const rate, tau = 10e9, 160 * time.Microsecond
	for load, want := range map[float64][2]uint8{0: {0, 0}, 0.25: {1, 2}, 0.5: {3, 4}, 0.75: {5, 6}, 1: {7, 7}} {
		s := mustMeterState(t, MeterPort{RateBits: rate, Tau: tau})
		dre := conga.NewDRE(tau, rate)
		now := uint64(1e12)
		for range 2000 {
			now += 1200 // a full packet's time
			if load > 0 {
				bytes := uint64(1500 * load)
				s.enter(now, bytes, 1)
				dre.Add(int(bytes), time.Duration(now))
			}
			if m := s.at(now); now > 1e12+1e6 && (m.DRE < want[0] || m.DRE > want[1]) {
				t.Fatalf("load %v: metric %d, want %v", load, m.DRE, want)
			}
			got, theirs := s.at(now).DRE, dre.Metric(time.Duration(now))
			if x := s.at(now).Load * 8; got != theirs && math.Abs(x-math.Round(x)) > 0.01 {
				t.Fatalf("load %v: metric %d of %v, conga's is %d", load, got, x, theirs)
			}
		}
		if m := s.at(now + uint64(20*tau)); m.DRE != 0 || m.Load > 1e-3 {
			t.Errorf("load %v is not forgotten: %+v", load, m)
		}
	}
}
