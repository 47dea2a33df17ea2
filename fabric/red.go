package fabric

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
)

// RED is Random Early Detection on a port's virtual queue: the longer the queue is on
// average, the more packets are marked or dropped, before it overflows (Floyd and Jacobson,
// "Random Early Detection Gateways for Congestion Avoidance", 1993; thesis §5.3.1). The zero
// value is none.
//
// Packets of network control (DSCP 48 and above), ARP and IPv6's neighbour discovery are
// never dropped. A super-segment is chosen, marked or dropped as a whole, and counts once in
// the average.
type RED struct {
	// Below Min of average queue no packet is chosen. From there to Max the probability rises
	// from 0 to MaxP. Min must be less than Max. The thesis has 20 and 60 packets.
	Min QueueLength `json:"min"`
	Max QueueLength `json:"max"`

	MaxP float64 `json:"max_p,omitempty"` // more than 0, at most 1; 0 is 0.1

	// Weight is that of the queue as each packet finds it in the average: w_q. From 0.0005
	// to 1; 0 is 0.1, as the thesis has it.
	Weight float64 `json:"weight,omitempty"`

	// Gentle has the probability rise from MaxP to 1 between Max and twice Max, and only
	// there all packets dropped. Without, all are from Max on.
	Gentle bool `json:"gentle,omitempty"`

	// Mark marks chosen packets that are capable of ECN, instead of dropping them. All
	// others are dropped, and so is everything where all packets are.
	Mark bool `json:"mark,omitempty"`

	// Seed is that of the random numbers. 0 takes one that nobody can guess.
	Seed uint64 `json:"seed,omitempty"`
}

// PortRED is what RED has done at a port.
type PortRED struct {
	Average     uint64 `json:"average"`      // bytes of the queue, smoothed, now
	Min         uint64 `json:"min"`          // bytes
	Max         uint64 `json:"max"`          // bytes
	EarlyDrops  uint64 `json:"early_drops"`  // packets chosen and dropped; marked ones are in Marks
	ForcedDrops uint64 `json:"forced_drops"` // packets dropped since the average was too high
}

const (
	redMinWeight = 0.0005
	redPacket    = 1514 // bytes whose time is one step of the average of an empty queue
)

// complete returns r at a port with its defaults filled in and its lengths in bytes.
func (r RED) complete(rateBits float64, queueBytes int) (RED, error) {
	if r == (RED{}) {
		return r, nil
	}
	if r.MaxP == 0 {
		r.MaxP = 0.1
	}
	if r.Weight == 0 {
		r.Weight = 0.1
	}
	if err := r.Check(); err != nil {
		return r, err
	}
	r.Min, r.Max = QueueLength{Bytes: r.Min.At(rateBits)}, QueueLength{Bytes: r.Max.At(rateBits)}
	switch {
	case r.Max.Bytes > queueBytes:
		return r, fmt.Errorf("RED.Max is %d bytes, must be at most the queue's %d, which drops first; lower it", r.Max.Bytes, queueBytes)
	case r.Min.Bytes >= r.Max.Bytes:
		return r, fmt.Errorf("RED.Min is %d bytes at this port, must be less than Max, %d", r.Min.Bytes, r.Max.Bytes)
	}
	return r, nil
}

// Check says what is wrong with r at ports of any rate, where all fields are given. Each
// error begins with the field's name, such as RED.Min.
func (r RED) Check() error {
	for _, l := range []struct {
		name   string
		length QueueLength
	}{{"Min", r.Min}, {"Max", r.Max}} {
		if err := l.length.Check(); err != nil {
			return fmt.Errorf("RED.%s %w", l.name, err)
		}
		if l.length == (QueueLength{}) {
			return fmt.Errorf("RED.%s is 0, must be more", l.name)
		}
	}
	switch {
	// Whichever the rate, lengths of the same kind compare.
	case (r.Min.Time == 0) == (r.Max.Time == 0) && (r.Min.Bytes >= r.Max.Bytes && r.Min.Time >= r.Max.Time):
		return fmt.Errorf("RED.Min is %v, must be less than Max, %v", r.Min, r.Max)
	case !(r.MaxP >= 1./redOne && r.MaxP <= 1):
		return fmt.Errorf("RED.MaxP is %g, must be from %.6f to 1", r.MaxP, 1./redOne)
	case !(r.Weight >= redMinWeight && r.Weight <= 1):
		return fmt.Errorf("RED.Weight is %g, must be from %g to 1", r.Weight, redMinWeight)
	}
	return nil
}

// state is that of a completed r at a port of a rate in bytes a second.
func (r RED) state(rate uint64) redState {
	if r == (RED{}) {
		return redState{}
	}
	s := redState{
		Min: uint64(r.Min.Bytes) << redFraction, Max: uint64(r.Max.Bytes) << redFraction,
		Slot:   max(1, redPacket*nanosPerSecond/rate),
		Weight: uint32(math.Round(r.Weight * redOne)), MaxP: uint32(math.Round(r.MaxP * redOne)),
		Random: r.Seed,
	}
	s.Limit = s.Max
	if r.Gentle {
		s.Limit *= 2
	}
	if r.Mark {
		s.Mark = 1
	}
	for s.Random == 0 { // from which the generator would not get away
		var b [8]byte
		rand.Read(b[:])
		s.Random = binary.NativeEndian.Uint64(b[:])
	}
	return s
}
