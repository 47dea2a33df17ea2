package world

import (
	"encoding/binary"
	"fmt"
	"time"

	"weft/resequencer"
)

// holdBound is how long a Gateway that runs has a packet at most after it has read it.
// Its timers are never late here, so this is the resequencer's bound to the nanosecond.
const holdBound = resequencer.DefaultHold

// ledger counts the packets in a Gateway's hands: each that it has read from the
// fabric it gives to the kernel once, whole, and within holdBound. What still waits in
// the socket is not in its hands: after a stop, the reader needs a while to catch up.
// What is wrong fails the World.
type ledger struct {
	world   *World
	inside  map[uint64][]time.Duration // by packet: when it was read, the earliest first
	longest time.Duration              // that one was inside while the Gateway ran
	resumed time.Duration              // when the Gateway went on, or began
}

// in takes note of a TCP packet that the Gateway reads.
func (l *ledger) in(b []byte) {
	if l.inside == nil {
		l.inside = make(map[uint64][]time.Duration)
	}
	key := identity(b)
	l.inside[key] = append(l.inside[key], l.world.Now())
}

// out takes note of one that the Gateway gives to the kernel.
func (l *ledger) out(b []byte) {
	key := identity(b)
	times := l.inside[key]
	if len(times) == 0 {
		l.world.fail(fmt.Errorf("at %v the kernel of %v got a packet that has not come, or once too often: %x", l.world.Now(), destination(b), b[:min(len(b), 40)]))
		return
	}
	age := l.world.Now() - max(times[0], l.resumed)
	if age > holdBound {
		l.world.fail(fmt.Errorf("at %v the Gateway of %v has held a packet for %v, want at most %v: %x", l.world.Now(), destination(b), age, holdBound, b[:min(len(b), 40)]))
	}
	l.longest = max(l.longest, age)
	l.remove(key)
}

func (l *ledger) remove(key uint64) {
	if times := l.inside[key]; len(times) > 1 {
		l.inside[key] = times[1:]
		return
	}
	delete(l.inside, key)
}

// oldest is for how long the packet that has waited longest has; 0 if there is none.
func (l *ledger) oldest() (age time.Duration) {
	for _, times := range l.inside {
		age = max(age, l.world.Now()-max(times[0], l.resumed))
	}
	return age
}

// identity is of what is the same in a TCP packet when it has been merged with others
// and cut again: addresses, ports, sequence number and payload; of one without payload
// all that TCP says.
func identity(b []byte) uint64 {
	b = b[:binary.BigEndian.Uint16(b[2:])]
	tcp := b[int(b[0]&0xf)*4:]
	sum := mix(binary.BigEndian.Uint64(b[12:]), binary.BigEndian.Uint64(tcp)) // and the sequence number
	rest := tcp[int(tcp[12]>>4)*4:]
	if len(rest) == 0 {
		rest = tcp[8:16] // acknowledgement, flags, window
	}
	sum = mix(sum, uint64(len(rest)))
	for ; len(rest) >= 8; rest = rest[8:] {
		sum = mix(sum, binary.LittleEndian.Uint64(rest))
	}
	for _, c := range rest {
		sum = mix(sum, uint64(c))
	}
	return sum
}

// inner is the IPv4 packet in one that may be wrapped by a Carrier.
func inner(b []byte) []byte {
	switch {
	case b[0]>>4 == 6:
		return b[40:]
	case b[9] == 4:
		return b[20:]
	}
	return b
}

// payloadOf is the bytes of payload of a TCP packet, 0 of another.
func payloadOf(b []byte) int {
	if !isTCP(b) {
		return 0
	}
	ip := int(b[0]&0xf) * 4
	return len(b) - ip - int(b[ip+12]>>4)*4
}
