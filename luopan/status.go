package luopan

import (
	"cmp"
	"slices"
	"time"
)

// Stats counts what a Table has done.
type Stats struct {
	Destinations int    `json:"destinations"` // known now
	Sampled      uint64 `json:"sampled"`      // choices that samples decided
	Unsampled    uint64 `json:"unsampled"`    // choices without a sample
	Rounds       uint64 `json:"rounds"`       // of probes to a rack
	Silent       uint64 `json:"silent"`       // rounds without an answer
	Probes       uint64 `json:"probes"`
	Answers      uint64 `json:"answers"`    // taken in
	Late         uint64 `json:"late"`       // answers to an earlier round: only their round trip counts
	Unknown      uint64 `json:"unknown"`    // answers to probes that were never sent, are forgotten, or were answered late before
	Replayed     uint64 `json:"replayed"`   // answers that came a second time
	WrongPath    uint64 `json:"wrong_path"` // answers that name another path than was asked about
	WrongHost    uint64 `json:"wrong_host"` // answers from another host than was asked
	Deferred     uint64 `json:"deferred"`   // times that rounds had to wait for budget
	Idle         uint64 `json:"idle"`       // destinations forgotten because they were idle
	Evicted      uint64 `json:"evicted"`    // destinations forgotten to make room
}

// Destination is what a Table knows of a rack.
type Destination struct {
	Destination uint32
	Metric      Metric        // by which the samples are compared
	RTT         time.Duration // of its probes, smoothed; 0 while unknown
	Expiry      time.Duration // how long a round's answers are used
	// Samples are those in use, the preferred one first. Empty if no sample decides.
	Samples []Sample
	// Choices is the number of flowcells by path, for the first 64 paths.
	Choices []uint64
	// OtherChoices is the number of flowcells by all other paths.
	OtherChoices uint64
	// Unsampled is how many of all these were decided without a sample.
	Unsampled uint64
}

// Sample is what a Table knows of a path.
type Sample struct {
	Path   int
	Age    time.Duration // since its answer, when the Table was last called
	Queue  uint8         // in Config.QueueUnit; see Meters
	Meters uint8         // switches that have added to Queue; 0: Queue says nothing
	Marked bool
	RTT    time.Duration
	Sent   int64 // bytes sent by it since
}

// Stats returns the counters.
func (t *Table) Stats() Stats {
	s := t.stats
	s.Destinations = len(t.slots)
	return s
}

// Destinations returns what is known of each rack, sorted by rack. It allocates, and its
// cost grows with the number of racks: it is for status.
func (t *Table) Destinations() []Destination {
	all := make([]Destination, 0, len(t.slots))
	for _, slot := range t.slots {
		all = append(all, t.describe(slot))
	}
	slices.SortFunc(all, func(a, b Destination) int { return cmp.Compare(a.Destination, b.Destination) })
	return all
}

func (t *Table) describe(slot int32) Destination {
	d := &t.destinations[slot]
	is := Destination{Destination: d.id, RTT: d.rtt, Expiry: t.expiry(d),
		Choices: slices.Clone(d.choices), OtherChoices: d.otherChoices, Unsampled: d.unsampled}
	if t.now >= d.until {
		return is
	}
	round := slices.Clone(t.round(slot, d.shown))
	slices.SortStableFunc(round, func(a, b sample) int {
		if t.config.SamplesOnly {
			return cmp.Compare(a.rank, b.rank)
		}
		if t.config.Turns {
			return cmp.Or(boolCompare(a.spent, b.spent), cmp.Compare(a.rank+a.own, b.rank+b.own))
		}
		return cmp.Or(cmp.Compare(d.filled(&a), d.filled(&b)), cmp.Compare(a.rank, b.rank))
	})
	for _, s := range round {
		if s.answered && s.live {
			is.Samples = append(is.Samples, Sample{Path: int(s.path), Age: t.now - s.at, Queue: s.queue,
				Meters: s.meters, Marked: s.marked, RTT: s.rtt, Sent: s.own})
		}
	}
	if len(is.Samples) > 0 {
		is.Metric = d.kind[d.shown]
	}
	return is
}

// boolCompare sorts false before true.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
