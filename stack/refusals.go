package stack

import (
	"sync"
	"time"
)

// refusals gives a Host back the errors about packets that it sent itself. It does so
// later, from a timer: while packets are sent, netstack holds its locks.
type refusals struct {
	receive func(packet []byte)
	timer   Timer

	mu      sync.Mutex
	packets [][]byte
}

// maxRefused is how many errors wait at most. One for each connection is enough.
const maxRefused = 256

func newRefusals(clock Clock, receive func(packet []byte)) *refusals {
	r := &refusals{receive: receive}
	r.timer = clock.AfterFunc(time.Hour, r.deliver)
	r.timer.Stop()
	return r
}

// add takes an error. The bytes belong to refusals from then on.
func (r *refusals) add(packet []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.packets) < maxRefused {
		r.packets = append(r.packets, packet)
		r.timer.Reset(0)
	}
}

func (r *refusals) deliver() {
	r.mu.Lock()
	packets := r.packets
	r.packets = nil
	r.mu.Unlock()
	for _, p := range packets {
		r.receive(p)
	}
}
