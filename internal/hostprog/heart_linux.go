package hostprog

import (
	"errors"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"weft/internal/kernel"
)

// heart is the heartbeat that a program looks at (bpf/heart.h). Its lock is held only
// during a beat.
type heart struct {
	mu     sync.Mutex
	memory *ebpf.Variable // nil: closed
}

// beat writes the time to memory that is shared with the program: now, or that in d. It makes
// no system call that a process without privileges might be refused.
func (h *heart) beat(d time.Duration, closed error) error {
	now, err := kernel.Monotonic()
	if err != nil {
		return err
	}
	return h.set(now+uint64(d), closed)
}

func (h *heart) set(at uint64, closed error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.memory == nil {
		return closed
	}
	return h.memory.Set(at)
}

func (h *heart) open(memory *ebpf.Variable) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.memory = memory
}

func (h *heart) close() { h.open(nil) }

// end makes the process look silent from now on.
func (h *heart) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.memory != nil {
		h.memory.Set(uint64(0))
		h.memory = nil
	}
}

// Names of variables in bpf/heart.h.
const (
	varPatience  = "patience"
	varHeartbeat = "heartbeat"
)

// setPatience says how long a process may be silent, 0 for ever.
func setPatience(spec *ebpf.CollectionSpec, d time.Duration) error {
	v := spec.Variables[varPatience]
	if v == nil {
		return errors.New("the program has no heartbeat")
	}
	return v.Set(uint64(d))
}
