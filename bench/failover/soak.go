package failover

import (
	"cmp"
	"fmt"
	"time"
)

// SoakOptions say how long failures continue, and how much is sent.
type SoakOptions struct {
	Options
	Duration time.Duration // of the failures
	// TransferBytes is the size of the largest transfer; sizes vary up to it. 0: 1 MB.
	TransferBytes int
	// Restart is the mean time between two restarts of an agent; 0: 5 s.
	Restart time.Duration
	Event   func(string) // hears of what happens; may be nil
}

func (o *SoakOptions) complete() {
	o.Options.Complete()
	o.TransferBytes = cmp.Or(o.TransferBytes, 1<<20)
	o.Restart = cmp.Or(o.Restart, 5*time.Second)
	o.Repetitions = cmp.Or(o.Repetitions, 1)
}

// Check returns an error that names the wrong flag.
func (o *SoakOptions) Check() error {
	if o.Duration < time.Second || o.Duration > 24*time.Hour {
		return fmt.Errorf("--chaos=%v: must be 1s to 24h", o.Duration)
	}
	return o.Options.Check()
}

// SoakResult is the result of a soak.
type SoakResult struct {
	Topology  string  `json:"topology"`
	RateMbit  float64 `json:"rate_mbit"`
	Agents    bool    `json:"agents"`
	Liveness  bool    `json:"liveness"`
	Seed      uint64  `json:"seed"`
	Machine   string  `json:"machine,omitempty"`
	Seconds   float64 `json:"seconds"`
	Failures  int     `json:"failures"` // links and switches that failed
	Heals     int     `json:"heals"`
	Restarts  int     `json:"agent_restarts"`
	Transfers int     `json:"transfers"` // that ended well, both ends with the same SHA-256
	Bytes     int64   `json:"bytes"`
	Corrupted int     `json:"corrupted"` // ended with another hash or length
	Stuck     int     `json:"stuck"`     // moved nothing for stuckAfter
	Lost      int     `json:"lost_connections"`
	Why       string  `json:"why,omitempty"` // the first of these
	// SlowestMs is the longest transfer's time.
	SlowestMs float64 `json:"slowest_ms"`
	// Converged says that after the last event every listener knew the state of all
	// links, and every agent that of its own links. ConvergedMs is how long that took.
	Converged   bool     `json:"converged"`
	ConvergedMs float64  `json:"converged_ms"`
	Wrong       []string `json:"wrong,omitempty"` // nodes with a wrong view, and the links
	IdlePercent float64  `json:"idle_percent"`
}

// OK reports whether nothing went wrong.
func (r *SoakResult) OK() bool {
	return r.Corrupted == 0 && r.Stuck == 0 && r.Lost == 0 && (r.Converged || !r.Agents)
}
