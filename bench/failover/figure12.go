package failover

import (
	"fmt"
	"time"

	"weft/bench/stats"
	"weft/topology"
)

// Degradation is DRB's Fig. 12: goodput while bouncing switches are taken away
// and brought back.
type Degradation struct {
	Topology        string      `json:"topology"`
	RateMbit        float64     `json:"rate_mbit"`
	Agents          bool        `json:"agents"`
	Liveness        bool        `json:"liveness"`
	Seed            uint64      `json:"seed"`
	Machine         string      `json:"machine,omitempty"`
	LostConnections int         `json:"lost_connections"`
	LostWhy         string      `json:"lost_why,omitempty"`
	IdlePercent     float64     `json:"idle_percent"`
	CPUBound        bool        `json:"cpu_bound"`
	Levels          []Level     `json:"levels"`
	Points          []PointJSON `json:"points"`
}

// Level is the time between two events.
type Level struct {
	Event     string  `json:"event"` // with which it begins
	FromS     float64 `json:"from_s"`
	ToS       float64 `json:"to_s"`
	IdealMbit float64 `json:"ideal_mbit"` // see Ideal
	// Mbit is the median of its samples without the first quarter, in which TCP finds its
	// rate again.
	Mbit      float64 `json:"mbit"`
	OfIdeal   float64 `json:"of_ideal"`   // Mbit divided by IdealMbit
	OfFirst   float64 `json:"of_first"`   // Mbit divided by that of the first level
	WantFirst float64 `json:"want_first"` // the same of IdealMbit: 1-1/n for each core that is gone
	// StableS is the time until the goodput first stayed within a tenth of Mbit for three
	// samples; -1 if it never did.
	StableS float64 `json:"stable_s"`
}

// PointJSON is a point in seconds.
type PointJSON struct {
	S    float64 `json:"s"`
	Mbit float64 `json:"mbit"`
}

// step is one of Figure12's events: what is down from then on.
type step struct {
	event string
	fail  string // a node that fails, "" for none
	heal  string
	down  []string
}

// figure12Steps are the events of DRB §6.2, at even times.
func figure12Steps(t *topology.Topology) ([]step, error) {
	for _, name := range []string{"3.0", "3.1"} {
		if _, err := t.Lookup(name); err != nil {
			return nil, fmt.Errorf("Fig. 12 takes the switches 3.0 and 3.1 away: %w", err)
		}
	}
	return []step{
		{event: "all up"},
		{event: "3.0 removed", fail: "3.0", down: []string{"3.0"}},
		{event: "3.1 removed", fail: "3.1", down: []string{"3.0", "3.1"}},
		{event: "3.1 back", heal: "3.1", down: []string{"3.0"}},
		{event: "3.0 back", heal: "3.0"},
	}, nil
}

// ideal is what the fabric can carry after a step.
func (s step) ideal(t *topology.Topology, to []topology.NodeID, rateMbit float64) float64 {
	for _, name := range s.down {
		if n, err := t.Lookup(name); err == nil {
			t = t.WithoutNode(n.ID)
		}
	}
	return sum(Ideal(t, to, rateMbit))
}

// within a tenth is stable.
const stableWithin = 0.1

// measure fills in what a level's points say.
func (l *Level) measure(points []point, first *Level) {
	from, to := time.Duration(l.FromS*float64(time.Second)), time.Duration(l.ToS*float64(time.Second))
	settled := from + (to-from)/4
	var mine, late []float64
	for _, p := range points {
		if p.T <= from || p.T > to {
			continue
		}
		mine = append(mine, p.Mbit)
		if p.T > settled {
			late = append(late, p.Mbit)
		}
	}
	l.Mbit = stats.Median(late)
	l.OfIdeal = quotient(l.Mbit, l.IdealMbit)
	l.OfFirst, l.WantFirst = quotient(l.Mbit, first.Mbit), quotient(l.IdealMbit, first.IdealMbit)
	l.StableS = -1
	for i, run := 0, 0; i < len(mine); i++ {
		run++
		if d := mine[i] - l.Mbit; d > stableWithin*l.Mbit || -d > stableWithin*l.Mbit {
			run = 0
		}
		if run == 3 {
			l.StableS = float64(i-2) * sampleEvery.Seconds()
			return
		}
	}
}

func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
