package schedulerd

import (
	"os"
	"time"
)

// StatusVersion rises when a key of Status goes or comes to mean something else.
const StatusVersion = 1

// Status is what a scheduler says about itself. Counters count from the start.
type Status struct {
	Version   int     `json:"version"`   // StatusVersion
	Scheduler string  `json:"scheduler"` // its address, which tells its status from a host's
	Process   int     `json:"process"`
	Uptime    float64 `json:"uptime_s"` // seconds

	Leads   bool   `json:"leads"`
	Leader  string `json:"leader"` // the one that leads; empty: not known
	Epoch   uint64 `json:"epoch"`  // of that
	Terms   uint64 `json:"terms"`  // of this scheduler
	Deposed uint64 `json:"deposed"`

	Nodes    int               `json:"nodes"` // heard in the last lifetime
	Messages uint64            `json:"messages"`
	Rejected map[string]uint64 `json:"rejected,omitempty"` // messages and flows, by reason
	Flows    uint64            `json:"flows_reported"`
	Dropped  uint64            `json:"flows_dropped"`     // above a node's budget, or while another scheduler leads
	Refused  map[string]uint64 `json:"refused,omitempty"` // flows and placements, by reason

	Rule       string  `json:"rule"`
	Known      int     `json:"flows"`  // elephants now
	Placed     int     `json:"placed"` // of them
	Changed    uint64  `json:"placements_changed"`
	Ended      uint64  `json:"placements_ended"`
	Unwritten  int     `json:"placements_unwritten"` // changes that etcd has not taken yet
	Rounds     uint64  `json:"rounds"`
	RoundMS    float64 `json:"round_ms"` // the last
	WriteMS    float64 `json:"write_ms"` // to etcd, the last
	EtcdErrors uint64  `json:"etcd_errors"`
	SendErrors uint64  `json:"not_sent"`
	Error      string  `json:"error,omitempty"` // of etcd, now
}

// reasonOverflow names the messages that came faster than they were read.
const reasonOverflow = "overflow"

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	desk := s.desk.Stats()
	refused := s.stats.refused
	if s.loop != nil {
		for i, n := range s.loop.Refused() {
			refused[i] += n
		}
	}
	rejected := desk.Rejected.ByName()
	if n := overflowed(s.conn); n > 0 {
		rejected[reasonOverflow] = n
	}
	return Status{
		Version: StatusVersion, Scheduler: s.file.listen.String(), Process: os.Getpid(), Uptime: now.Seconds(),
		Leads: s.loop != nil, Leader: s.leader, Epoch: s.epoch, Terms: s.stats.terms, Deposed: s.stats.deposed,
		Nodes: s.desk.Nodes(now - s.file.Lifetime), Messages: desk.Received, Rejected: rejected,
		Flows: desk.Flows, Dropped: desk.Refused, Refused: refused.ByName(),
		Rule: s.file.Rule, Known: s.stats.flows, Placed: s.stats.placed, Changed: s.stats.changed, Ended: s.stats.ended, Unwritten: s.stats.unwritten,
		Rounds: s.stats.rounds, RoundMS: round(s.stats.roundMS), WriteMS: round(s.stats.writeMS),
		EtcdErrors: s.stats.writeFails, SendErrors: s.stats.sendErrors, Error: s.stats.lastError,
	}
}

// round leaves microseconds.
func round(ms float64) float64 {
	return float64(time.Duration(ms*float64(time.Millisecond)).Round(time.Microsecond)) / float64(time.Millisecond)
}
