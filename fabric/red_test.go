package fabric

import (
	"math"
	"strings"
	"testing"
	"time"
)

// look is the program's step for each packet: what it finds goes into the average.
func (s *redState) look(queued uint64) {
	queued <<= redFraction
	if queued > s.Average {
		s.Average += (queued - s.Average) * uint64(s.Weight) >> 16
	} else {
		s.Average -= (s.Average - queued) * uint64(s.Weight) >> 16
	}
}

const redCertain = 1 << 24 // a probability of 1

type redChoice int

const (
	redPass redChoice = iota
	redEarly
	redForced
)

// probability is p_b of the average, in 2⁻²⁴.
func (s *redState) probability() uint64 {
	maxP := uint64(s.MaxP)
	if s.Average < s.Max {
		return (s.Average - s.Min) * maxP / ((s.Max - s.Min) >> redFraction)
	}
	return maxP<<redFraction + (s.Average-s.Max)*(redOne-maxP)/(s.Max>>redFraction)
}

// choose is what the program does with a packet after look.
func (s *redState) choose() redChoice {
	switch {
	case s.Average < s.Min:
		s.Since = 0
		return redPass
	case s.Average >= s.Limit:
		s.Since = 1
		return redForced
	}
	p := s.probability()
	if spread := uint64(s.Since) * p; spread < redCertain {
		p = p << 24 / (redCertain - spread)
	} else {
		p = redCertain
	}
	s.Random ^= s.Random << 13
	s.Random ^= s.Random >> 7
	s.Random ^= s.Random << 17
	if s.Random>>40 >= p {
		s.Since++
		return redPass
	}
	s.Since = 1
	return redEarly
}

// enterRED is enter of a port with RED. It reports whether the packet is to be marked, and
// whether it is dropped.
func (s *meterState) enterRED(now, wire, segments uint64, capable, control bool) (mark, drop bool) {
	s.RED.rest(s.idle(now))
	s.drain(now)
	s.RED.look(s.queued())
	if !control {
		switch choice := s.RED.choose(); {
		case choice == redEarly && s.RED.Mark != 0 && capable:
			mark = true
		case choice == redEarly:
			s.RED.Early += segments
			return false, true
		case choice == redForced:
			s.RED.Forced += segments
			return false, true
		}
	}
	s.fill(now, wire, segments)
	return mark, false
}

func mustRED(t *testing.T, r RED) redState {
	t.Helper()
	return mustMeterState(t, MeterPort{RateBits: 100e6, QueueBytes: 1 << 20, RED: r}).RED
}

// The average is avg ← (1-w)·avg + w·q, and after m packets' time of rest (1-w)^m·avg
// (Floyd and Jacobson §4), to a thousandth.
func TestRED_average(t *testing.T) {
	for _, weight := range []float64{0.0005, 0.002, 0.1, 0.75, 1} {
		s := mustRED(t, RED{Min: QueueLength{Bytes: 1}, Max: QueueLength{Bytes: 1 << 20}, Weight: weight})
		exact := 0.0
		for i := range 5000 {
			queue := uint64(500_000 + 400_000*math.Sin(float64(i)/100))
			s.look(queue)
			exact += weight * (float64(queue) - exact)
			if got := float64(s.Average) / 256; math.Abs(got-exact) > exact/100+16 {
				t.Fatalf("weight %g, packet %d: %.1f bytes, exactly %.1f", weight, i, got, exact)
			}
		}
		for _, slots := range []uint64{0, 1, 7, 100, 1000, 1 << 17} {
			r := s
			r.rest(slots*r.Slot + r.Slot/2)
			want := float64(s.Average) / 256 * math.Pow(1-weight, float64(slots))
			if got := float64(r.Average) / 256; math.Abs(got-want) > want/50+2 {
				t.Errorf("weight %g, %d packets' time of rest: %.1f bytes, want %.1f", weight, slots, got, want)
			}
		}
	}
}

// At a constant average the gap between chosen packets is uniform from 1 to 1/p (§7), so
// its mean is half of that and none is longer.
func TestRED_gapsAreUniform(t *testing.T) {
	const kB = 1000
	for _, c := range []struct {
		average int
		gentle  bool
		want    float64 // p_b
	}{{25 * kB, false, 0.025}, {40 * kB, false, 0.1}, {50 * kB, true, 0.15}, {75 * kB, true, 0.575}} {
		s := mustRED(t, RED{Min: QueueLength{Bytes: 20 * kB}, Max: QueueLength{Bytes: 50 * kB}, MaxP: 0.15, Gentle: c.gentle, Seed: 7})
		s.Average = uint64(c.average) << redFraction
		// The first gap begins where congestion does, not at a chosen packet.
		for s.choose() == redPass {
		}
		const packets = 200_000
		gap, longest, chosen := 0, 0, 0
		for range packets {
			gap++
			if s.choose() == redEarly {
				longest, gap = max(longest, gap), 0
				chosen++
			}
		}
		gaps := math.Ceil(1 / c.want)
		mean := float64(packets) / float64(chosen)
		if float64(longest) > gaps+1 {
			t.Errorf("average %d: a gap of %d packets, at most %g", c.average, longest, gaps)
		}
		if want := (1/c.want + 1) / 2; math.Abs(mean-want) > want*0.1+0.3 {
			t.Errorf("average %d: one of %.2f packets, want one of %.2f", c.average, mean, want)
		}
	}
}

// Below Min none is chosen, from Max on all are, or with Gentle from twice Max on.
func TestRED_bounds(t *testing.T) {
	for _, gentle := range []bool{false, true} {
		s := mustRED(t, RED{Min: QueueLength{Bytes: 20_000}, Max: QueueLength{Bytes: 50_000}, Gentle: gentle, Seed: 1})
		for average, want := range map[uint64]redChoice{0: redPass, 19_999: redPass, 100_000: redForced, 1 << 20: redForced} {
			s.Average = average << redFraction
			for range 100 {
				if got := s.choose(); got != want {
					t.Fatalf("gentle %v, average %d: choice %d, want %d", gentle, average, got, want)
				}
			}
		}
		s.Average = 50_000 << redFraction
		forced := 0
		for range 100 {
			if s.choose() == redForced {
				forced++
			}
		}
		if forced != map[bool]int{false: 100, true: 0}[gentle] {
			t.Errorf("gentle %v: at Max %d of 100 are dropped for certain", gentle, forced)
		}
	}
}

// What is dropped does not count as waiting (thesis Fig. 5.5, line 11).
func TestRED_droppedDoNotWait(t *testing.T) {
	s := mustMeterState(t, MeterPort{RateBits: 8000, QueueBytes: 1 << 20, RED: RED{Min: QueueLength{Bytes: 1000}, Max: QueueLength{Bytes: 2000}, Weight: 1}})
	for range 10 {
		s.enterRED(1e9, 1000, 1, true, false)
	}
	if got := s.at(1e9); got.Length > 3000 || got.RED.EarlyDrops+got.RED.ForcedDrops+got.Packets != 10 || got.RED.ForcedDrops < 6 {
		t.Errorf("%+v", got)
	}
	for range 10 {
		s.enterRED(1e9, 1000, 1, true, true)
	}
	if got := s.at(1e9); got.Length < 10_000 {
		t.Errorf("network control was dropped: %+v", got)
	}
	if got := s.at(1e9 + 1000e9); got.RED.Average != 0 {
		t.Errorf("the average of a queue that is long empty is %d", got.RED.Average)
	}
}

func TestRED_errors(t *testing.T) {
	length := func(bytes int) QueueLength { return QueueLength{Bytes: bytes} }
	for want, r := range map[string]RED{
		"RED.Max is 80000 bytes, must be at most the queue's 75000": {Min: length(1), Max: length(80_000)},
		"RED.Min is 0, must be more":                                {Max: length(1000)},
		"RED.Max is 0, must be more":                                {Min: length(1000)},
		"RED.Min is 5, must be less than":                           {Min: length(5), Max: length(5)},
		"RED.Min is 6ms, must be less":                              {Min: QueueLength{Time: 6 * time.Millisecond}, Max: QueueLength{Time: 5 * time.Millisecond}},
		"RED.Min is 25000 bytes":                                    {Min: QueueLength{Time: 10 * time.Millisecond}, Max: length(20_000)},
		"RED.Min is -1":                                             {Min: length(-1), Max: length(5)},
		"RED.Max is both":                                           {Min: length(1), Max: QueueLength{5, time.Second}},
		"RED.MaxP is 2":                                             {Min: length(1), Max: length(5), MaxP: 2},
		"RED.MaxP is NaN":                                           {Min: length(1), Max: length(5), MaxP: math.NaN()},
		"RED.Weight is 1e-05":                                       {Min: length(1), Max: length(5), Weight: 1e-5},
		"both ECN and RED are given, and":                           {Min: length(1), Max: length(5), Mark: true},
	} {
		p := MeterPort{Name: "p0", RateBits: 20e6, QueueBytes: 75_000, RED: r}
		if strings.HasPrefix(want, "both ECN") {
			p.ECNBytes = 1000
		}
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	p, err := MeterPort{Name: "p0", RateBits: 20e6, QueueBytes: 75_000,
		RED: RED{Min: QueueLength{Time: 4 * time.Millisecond}, Max: QueueLength{Time: 12 * time.Millisecond}}}.complete()
	if err != nil || p.RED.Min != length(10_000) || p.RED.Max != length(30_000) {
		t.Errorf("%+v, %v", p.RED, err)
	}
}
