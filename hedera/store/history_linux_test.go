package store

import (
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// act is what is done to one flow's placement.
type act struct {
	kind  int
	flow  int
	epoch uint64
	path  int
}

const (
	elects = iota // of all flows: from then on only this epoch, or a later one, writes
	writes
	reads
)

// outcome is what came of an act.
type outcome struct {
	path    int // that was read; 0: none
	unknown bool
	refused bool
}

// placed is the state of a flow: its path, and the epoch that may write.
type placed struct {
	epoch uint64
	path  int
}

// model says what is right: a write of an epoch counts unless a later epoch has begun, and
// a read finds the last write. A write whose outcome is not known may count at any time
// after its call, or never.
var model = porcupine.Model{
	Init: func() any { return placed{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(placed), input.(act), output.(outcome)
		switch {
		case in.kind == reads:
			return out.path == s.path, s
		case in.kind == elects:
			return in.epoch > s.epoch, placed{in.epoch, s.path}
		case out.refused:
			return true, s
		case in.epoch < s.epoch:
			return out.unknown, s
		}
		return true, placed{in.epoch, in.path}
	},
}

// history is what happened, with times.
type history struct {
	mu    sync.Mutex
	start time.Time
	ops   []porcupine.Operation
	next  int // client
}

func (h *history) now() int64 { return int64(time.Since(h.start)) }

func (h *history) add(client int, in act, out outcome, call, end int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: call, Return: end})
}

// client numbers those who act: a write whose outcome is not known has no end, and its
// client does no more.
func (h *history) client() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	return h.next
}

const forever = int64(1) << 62

// check checks each flow by itself, all with the elections. It fails the test if a history
// is so long that it is not decided in time.
func (h *history) check(t *testing.T, flows int) bool {
	for f := range flows {
		var ops []porcupine.Operation
		for _, op := range h.ops {
			if in := op.Input.(act); in.kind == elects || in.flow == f {
				ops = append(ops, op)
			}
		}
		switch porcupine.CheckOperationsTimeout(model, ops, 5*time.Minute) {
		case porcupine.Illegal:
			return false
		case porcupine.Unknown:
			t.Errorf("flow %d: a history of %d operations is not decided", f, len(ops))
		}
	}
	return true
}
