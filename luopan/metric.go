package luopan

import "time"

// Metric is the quantity by which the samples of a round are compared.
type Metric uint8

// The metrics, from the least that is known to the most.
const (
	NoMetric   Metric = iota // no answer yet
	RoundTrip                // time until the answer came
	OneWay                   // time that the probe took, by two clocks
	QueueBytes               // queues that the switches report
)

func (m Metric) String() string {
	return [...]string{"none", "round trip", "one-way delay", "queue"}[min(m, QueueBytes)]
}

const (
	maxQueue = 127 // QCM's 7 bits
	badQueue = 8   // units above twice what is usual, see learn
)

// grain is by how much delays must differ to mean anything: what a host's
// scheduler adds to them is noise.
func grain(rtt time.Duration) time.Duration { return max(rtt/8, 1) }

// weigh ranks the answers of a round by the best metric that they all have, in bytes that
// are ahead on the path.
//
// A delay counts in whole grains above the least delay, at the rate of a path. A
// congestion mark is worse than any delay without one; where switches write queue
// lengths, it is ignored. A path that has not answered yet counts as full: a probe that
// is late or lost waits in a queue or was dropped by one.
func (t *Table) weigh(slot int32, which uint8) {
	d := &t.destinations[slot]
	round := t.round(slot, which)
	queues, times := true, true
	var least *sample
	for i := range round {
		s := &round[i]
		if !s.answered {
			continue
		}
		queues = queues && s.meters > 0
		times = times && s.received
	}
	kind := RoundTrip
	switch {
	case queues:
		kind = QueueBytes
	case times:
		kind = OneWay
	}
	d.kind[which] = kind

	delay := func(s *sample) time.Duration {
		if kind == OneWay {
			return s.oneWay
		}
		return s.rtt
	}
	for i := range round {
		// Subtracted before compared: clocks of others may be close to wrapping.
		if s := &round[i]; s.answered && (least == nil || delay(s)-delay(least) < 0) {
			least = s
		}
	}
	unit := int64(t.config.QueueUnit)
	full := maxQueue * unit // what counts as such, and the most among the answers
	step := grain(d.rtt)
	for i := range round {
		s := &round[i]
		switch {
		case !s.answered:
			continue
		case kind == QueueBytes:
			s.rank = int64(s.queue) * unit
		default:
			above := max(delay(s)-delay(least), 0) / step * step
			s.rank = int64(min(above, maxTime).Seconds() * t.config.RateBits / 8)
		}
		full = max(full, s.rank)
	}
	for i := range round {
		switch s := &round[i]; {
		case !s.answered:
			s.rank = full
		case s.marked && kind != QueueBytes:
			s.rank += full + unit
		}
	}
	t.average(slot)
}

// average computes fair of the samples in use: they are a random choice of paths,
// so on average those that were not sampled have as much before them.
func (t *Table) average(slot int32) {
	d := &t.destinations[slot]
	sum, n := int64(0), int64(0)
	for _, s := range t.round(slot, d.shown) {
		if s.live {
			sum += s.rank
			n++
		}
	}
	d.fair = sum / max(n, 1)
}
