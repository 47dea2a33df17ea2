package failover

import (
	"time"

	"weft/bench/stats"
	"weft/bench/testbed"
)

// The kinds of failures.
const (
	KindSeen   = "seen"   // a port goes down, and so does the carrier at the other end
	KindSilent = "silent" // links stay up and drop everything
)

// Kinds lists them.
var Kinds = []string{KindSeen, KindSilent}

// Result sums up the repetitions of one kind of failure.
type Result struct {
	Kind        string `json:"kind"`
	Agents      bool   `json:"agents"`   // switches run agents, hosts listeners
	Liveness    bool   `json:"liveness"` // hosts probe, and take losses as evidence
	Repetitions int    `json:"repetitions"`
	// The time, in milliseconds, from just before a link was taken down until the last
	// packet that needed it left a sender's uplink, behind its queue. It is 0 if there
	// was none. A node's links are taken down one after the other; each has its own time.
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	Min float64 `json:"min_ms"`
	Max float64 `json:"max_ms"`
	// The same as P50 and so on, but from the end of the kernel's call that took the link
	// down; and the longest such call. The call waits for everybody else who changes this
	// machine's network settings.
	AfterP50 float64 `json:"after_p50_ms"`
	AfterP99 float64 `json:"after_p99_ms"`
	AfterMax float64 `json:"after_max_ms"`
	FallMax  float64 `json:"fall_max_ms"`
	// Paused counts repetitions in whose first moments (pauseWindow) a processor of this
	// machine was stopped; -1 if nobody could watch that. SteadyP99 and SteadyMax are P99 and
	// Max of the others.
	Paused    int     `json:"paused"`
	SteadyP99 float64 `json:"steady_p99_ms"`
	SteadyMax float64 `json:"steady_max_ms"`
	// NotClosed counts repetitions in which packets were still sent to the failed part at
	// the end of the outage. They count with the time of the last such packet.
	NotClosed   int     `json:"not_closed"`
	HolePackets float64 `json:"hole_packets_p50"` // packets that needed the failed part, per repetition
	// LostConnections ended with an error. StuckConnections moved no byte for a second
	// after everything was healed.
	LostConnections  int    `json:"lost_connections"`
	StuckConnections int    `json:"stuck_connections"`
	LostWhy          string `json:"lost_why,omitempty"` // the first one's error
	// OthersExpected counts pairs and paths, in all repetitions, over the same bouncing
	// switch that do not need the failed link. OthersKept counts those of them that were
	// used in the second half of the outage.
	OthersExpected int `json:"others_expected"`
	OthersKept     int `json:"others_kept"`
	// The time from the healing until the last pair used the healed part again.
	RestoredP50 float64 `json:"restored_p50_ms"`
	RestoredP99 float64 `json:"restored_p99_ms"`
	NotRestored int     `json:"not_restored"` // in time
	// Goodput of all receivers together in Mbit/s, means over the repetitions: before the
	// failure, from the failure to the healing, and afterwards.
	GoodputBefore float64 `json:"goodput_before"`
	GoodputDuring float64 `json:"goodput_during"`
	GoodputAfter  float64 `json:"goodput_after"`
	IdealMbit     float64 `json:"ideal_mbit"`   // of the whole fabric, see Ideal
	OfferedMbit   float64 `json:"offered_mbit"` // what all streams together ask for; 0: as much as there is
	// IdlePercent is the processors' idle time during the run. CPUBound says that it was
	// so little that the figures are the machine's, and comparisons are void.
	IdlePercent float64 `json:"idle_percent"`
	CPUBound    bool    `json:"cpu_bound"`
	Topology    string  `json:"topology"`
	RateMbit    float64 `json:"rate_mbit"`
	HelloMs     float64 `json:"hello_ms,omitempty"` // of the agents
	Seed        uint64  `json:"seed"`
	Machine     string  `json:"machine,omitempty"`

	Samples []Repetition `json:"samples"`
}

// Repetition is one failure.
type Repetition struct {
	Target         string  `json:"target"`
	LeftMs         float64 `json:"left_ms"`
	AfterMs        float64 `json:"after_ms"` // as LeftMs, from when the kernel's call was over
	FallMs         float64 `json:"fall_ms"`  // the longest call of the kernel's that took a link down
	HolePackets    int     `json:"hole_packets"`
	Paused         bool    `json:"paused"`
	Closed         bool    `json:"closed"`
	OthersExpected int     `json:"others_expected"`
	OthersKept     int     `json:"others_kept"`
	RestoredMs     float64 `json:"restored_ms"` // -1: not in time
	GoodputBefore  float64 `json:"goodput_before"`
	GoodputDuring  float64 `json:"goodput_during"`
	GoodputAfter   float64 `json:"goodput_after"`
	Lost           int     `json:"lost_connections"`
	Stuck          int     `json:"stuck_connections"`
}

// pauseWindow is the time from a failure in which a pause of the machine counts. It does not
// depend on what was measured: a late one has as many pauses as an early one.
const pauseWindow = 50 * time.Millisecond

// summarise completes r by its Samples. watched says that somebody looked for pauses.
func (r *Result) summarise(before, end testbed.CPU, watched bool) {
	of := func(f func(Repetition) float64) (all []float64) {
		for _, s := range r.Samples {
			all = append(all, f(s))
		}
		return all
	}
	left := of(func(s Repetition) float64 { return s.LeftMs })
	r.Repetitions = len(r.Samples)
	r.P50, r.P99 = stats.Median(left), stats.Percentile(left, 99)
	r.Min, r.Max = stats.Percentile(left, 0), stats.Percentile(left, 100)
	after := of(func(s Repetition) float64 { return s.AfterMs })
	r.AfterP50, r.AfterP99, r.AfterMax = stats.Median(after), stats.Percentile(after, 99), stats.Percentile(after, 100)
	r.FallMax = stats.Percentile(of(func(s Repetition) float64 { return s.FallMs }), 100)
	r.HolePackets = stats.Median(of(func(s Repetition) float64 { return float64(s.HolePackets) }))
	r.GoodputBefore = mean(of(func(s Repetition) float64 { return s.GoodputBefore }))
	r.GoodputDuring = mean(of(func(s Repetition) float64 { return s.GoodputDuring }))
	r.GoodputAfter = mean(of(func(s Repetition) float64 { return s.GoodputAfter }))
	var restored, steady []float64
	for _, s := range r.Samples {
		r.LostConnections += s.Lost
		r.StuckConnections += s.Stuck
		r.OthersExpected += s.OthersExpected
		r.OthersKept += s.OthersKept
		if s.Paused {
			r.Paused++
		} else {
			steady = append(steady, s.LeftMs)
		}
		if !s.Closed {
			r.NotClosed++
		}
		if s.RestoredMs < 0 {
			r.NotRestored++
		} else {
			restored = append(restored, s.RestoredMs)
		}
	}
	r.RestoredP50, r.RestoredP99 = stats.Median(restored), stats.Percentile(restored, 99)
	if !watched {
		r.Paused = -1
	} else if len(steady) > 0 {
		r.SteadyP99, r.SteadyMax = stats.Percentile(steady, 99), stats.Percentile(steady, 100)
	}
	r.IdlePercent = testbed.IdlePercent(before, end)
	r.CPUBound = r.IdlePercent >= 0 && r.IdlePercent < testbed.CPUBound
}

func mean(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	return sum(x) / float64(len(x))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
