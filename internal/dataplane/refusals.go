package dataplane

import (
	"sync"

	"weft/internal/clock"
)

// refusals gives a host back the errors about packets that it sent itself. It does so
// later, from a timer: while packets are sent, netstack holds its locks.
type refusals struct {
	receive func(packet []byte)
	alarm   *clock.Alarm

	mu      sync.Mutex
	packets [][]byte
}

// maxRefused is how many errors wait at most. One for each connection is enough.
const maxRefused = 256

func newRefusals(c clock.Clock, receive func(packet []byte)) *refusals {
	r := &refusals{receive: receive}
	r.alarm = clock.NewAlarm(c, 0, r.deliver)
	return r
}

// add takes an error. The bytes belong to refusals from then on.
func (r *refusals) add(packet []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.packets) < maxRefused {
		r.packets = append(r.packets, packet)
		r.alarm.Kick()
	}
}

func (r *refusals) deliver() {
	r.mu.Lock()
	r.alarm.Rang()
	packets := r.packets
	r.packets = nil
	r.mu.Unlock()
	for _, p := range packets {
		r.receive(p)
	}
}
