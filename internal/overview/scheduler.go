package overview

import "fmt"

// Scheduler is what a host or switch says of the scheduler of elephants.
type Scheduler struct {
	Leader    string `json:"leader"`
	Elephants int    `json:"elephants"`
	Pins      int    `json:"pins"`
	Error     string `json:"error"`
}

// about says what is reported and pinned.
func (s *Scheduler) about() []string {
	if s == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s, %d pinned", count(s.Elephants, "elephant", "elephants"), s.Pins)}
}

// problems are why elephants are not scheduled.
func (s *Scheduler) problems() []Problem {
	switch {
	case s == nil:
		return nil
	case s.Error != "":
		return []Problem{{What: "elephants are not scheduled: " + s.Error, Do: "see the daemon's log"}}
	case s.Leader == "":
		return []Problem{{What: "no scheduler leads: elephants go as all others do", Do: "see whether weft scheduler runs, and has the same keys and topology"}}
	}
	return nil
}
