package failover

import (
	"fmt"
	"time"
)

// noteStuck says what the hosts and the switches know when connections move nothing
// although all is healed.
func (r *rig) noteStuck(rep *Repetition) {
	if rep.Stuck == 0 {
		return
	}
	var timeouts, retransmits, stalls uint64
	var stalled time.Duration
	for _, h := range r.session.Stacks {
		s := h.Stats()
		timeouts += s.TCP.Timeouts
		retransmits += s.TCP.Retransmits
		stalls += s.Liveness.Watcher.Stalls
		stalled += s.Liveness.Watcher.Stalled
	}
	knows := "no agents"
	if r.control != nil {
		knows = "all agents and hosts take every link for up"
		if wrong := r.control.wrong(nil); len(wrong) > 0 {
			knows = fmt.Sprintf("%s, and %d more such mistakes", wrong[0], len(wrong)-1)
		}
	}
	r.options.note("%s: %d connections move nothing after the repair; %s; since the start hosts had %d timeouts and %d retransmissions, and were not run %d times, %v in all",
		rep.Target, rep.Stuck, knows, timeouts, retransmits, stalls, stalled.Round(time.Millisecond))
}
