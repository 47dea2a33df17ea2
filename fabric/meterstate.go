package fabric

import (
	"math"

	"weft/internal/qcn"
)

const (
	nanosPerSecond = 1_000_000_000

	dreTicks     = 16            // of the estimator in tau
	dreFactor    = 1<<16 - 1<<12 // 1 - α in 2⁻¹⁶, α being 1/16
	dreForgotten = 256           // ticks after which nothing is left
	dreScale     = 256           // the register counts bytes/256
	dreLevels    = 8             // 3 bits, CONGA's Q
	dreMost      = 1 << 47       // in the register: products with a factor fit into 64 bits
)

// meterState is struct meter of bpf/meter.c: what the program keeps of a port, of
// which the first block is the port's configuration.
type meterState struct {
	Lock   uint32 // the kernel's
	Unit   uint32 // MeterPort.QCMUnit
	Rate   uint64 // bytes a second
	Burst  uint64 // bytes
	Room   uint64 // bytes, burst included
	Full   uint64 // ns after which whatever was in it has drained
	ECN    uint64 // bytes; all bits set: no marks
	Tick   uint64 // ns, of which the estimator has dreTicks in tau
	Target uint64 // the register at the full rate, in bytes/dreScale

	Last      uint64 // ns of the monotonic clock: when length was right
	Remainder uint64 // what has drained since and is not a byte yet, in bytes/nanosPerSecond
	Length    uint64 // bytes, those of the burst included
	Ticked    uint64 // the number of the last tick that the register was right at
	Register  uint64 // bytes/dreScale

	Max, Packets, Bytes, Marks, Samples, Raised, Overflow uint64

	RED redState
	QCN qcn.Congestion
}

// configured returns the state before the first packet.
func (s meterState) configured() meterState {
	return meterState{Unit: s.Unit, Rate: s.Rate, Burst: s.Burst, Room: s.Room, Full: s.Full, ECN: s.ECN,
		Tick: s.Tick, Target: s.Target, RED: s.RED.configured(), QCN: s.QCN.Configured()}
}

func (p MeterPort) state() meterState {
	rate := uint64(math.Round(p.RateBits / 8))
	room := uint64(p.QueueBytes + p.BurstBytes)
	s := meterState{
		Unit: uint32(p.QCMUnit), Rate: rate, Burst: uint64(p.BurstBytes), Room: room,
		Full: room*nanosPerSecond/rate + 1, ECN: math.MaxUint64,
		Tick:   uint64(p.Tau) / dreTicks,
		Target: max(1, uint64(float64(rate)*p.Tau.Seconds()*dreScale)),
		RED:    p.RED.state(rate),
		QCN:    p.QCN.state(),
	}
	if p.ECNBytes > 0 {
		s.ECN = uint64(p.ECNBytes)
	}
	return s
}

// drain is the program's first step for every packet. It brings the queue up to the time
// now, in ns of the monotonic clock. Packets on several CPUs may come a little out of
// order; time does not go back.
func (s *meterState) drain(now uint64) {
	if int64(now-s.Last) <= 0 {
		return
	}
	elapsed := now - s.Last
	s.Last = now
	if s.Length == 0 || elapsed >= s.Full {
		s.Length, s.Remainder = 0, 0
		return
	}
	drained := elapsed*s.Rate + s.Remainder
	if n := drained / nanosPerSecond; n < s.Length {
		s.Length -= n
		s.Remainder = drained % nanosPerSecond
	} else {
		s.Length, s.Remainder = 0, 0
	}
}

// queued is what waits: what is above the burst.
func (s *meterState) queued() uint64 {
	return s.Length - min(s.Length, s.Burst)
}

// idle returns for how many ns the queue has been empty at the time now. Call it before
// drain.
func (s *meterState) idle(now uint64) uint64 {
	elapsed := now - s.Last
	busy := s.queued() * nanosPerSecond / s.Rate
	if int64(elapsed) <= 0 || elapsed <= busy {
		return 0
	}
	return elapsed - busy
}

// decay is the estimator's X ← X·(1-α) of every tick that has passed (CONGA §3.2),
// by squaring.
func (s *meterState) decay(now uint64) {
	tick := now / s.Tick
	if tick <= s.Ticked {
		return
	}
	ticks := tick - s.Ticked
	s.Ticked = tick
	if ticks >= dreForgotten {
		s.Register = 0
		return
	}
	for factor := uint64(dreFactor); ticks > 0; ticks >>= 1 {
		if ticks&1 != 0 {
			s.Register = s.Register * factor >> 16
		}
		factor = factor * factor >> 16
	}
}

// metric is X/Cτ in 3 bits.
func (s *meterState) metric() uint8 {
	return uint8(min(dreLevels-1, s.Register*dreLevels/s.Target))
}

// at returns the port's meter at a time in ns of the monotonic clock.
func (s meterState) at(now uint64) PortMeter {
	if s.RED.Weight != 0 {
		s.RED.rest(s.idle(now))
	}
	s.drain(now)
	s.decay(now)
	ecn := s.ECN
	if ecn == math.MaxUint64 {
		ecn = 0
	}
	return PortMeter{
		RateBits: float64(s.Rate) * 8, Length: s.queued(), Max: s.Max, ECNBytes: ecn, DRE: s.metric(),
		Load:    float64(s.Register) / float64(s.Target),
		Packets: s.Packets, Bytes: s.Bytes, Marks: s.Marks, Samples: s.Samples, Raised: s.Raised, Overflow: s.Overflow,
		RED: s.RED.at(), QCN: PortQCN{Target: s.QCN.Target, Sampled: s.QCN.Sampled, Lost: s.QCN.Lost},
	}
}
