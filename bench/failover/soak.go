package failover

import (
	"cmp"
	"fmt"
	"time"
)

// SoakOptions say how long failures go on, and how much is sent.
type SoakOptions struct {
	Options
	Duration time.Duration // of the failures
	// TransferBytes is the most that one transfer sends; they are of all sizes up
	// to it. 0: 1 MB.
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

// Check says what is wrong with options, by the names of the flags.
func (o *SoakOptions) Check() error {
	if o.Duration < time.Second || o.Duration > 24*time.Hour {
		return fmt.Errorf("--chaos=%v: must be 1s to 24h", o.Duration)
	}
	return o.Options.Check()
}

// SoakResult is what came of it.
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
	// Converged says that after the last event every listener knew the truth, and every
	// agent the truth about its own links. ConvergedMs is how long that took.
	Converged   bool     `json:"converged"`
	ConvergedMs float64  `json:"converged_ms"`
	Wrong       []string `json:"wrong,omitempty"` // who did not, and of which links
	IdlePercent float64  `json:"idle_percent"`
}

// OK reports whether nothing went wrong.
func (r *SoakResult) OK() bool {
	return r.Corrupted == 0 && r.Stuck == 0 && r.Lost == 0 && (r.Converged || !r.Agents)
}
