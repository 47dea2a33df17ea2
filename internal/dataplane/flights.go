package dataplane

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"weft/flowcell"
)

// flights remembers which sequence numbers of each TCP flow are in flight. It tells a
// sender that has seen them from one that guesses. Only a node on the path of a
// connection, or at its other end, knows them; others must guess one number in 2^32.
//
// The table is direct-mapped: a new flow overwrites its slot. The old flow is not
// believed until it sends again. flights is safe for concurrent use: egress records what
// was sent, ingress what was acknowledged.
type flights struct {
	seed uint64
	on   atomic.Bool // somebody wants to know
	mu   sync.Mutex
	list []flight

	heeded atomic.Bool // the policy wants to know what is acknowledged
}

// flight is one flow's.
type flight struct {
	tag  uint32 // of the flow
	low  uint32 // the least that an acknowledgement which was overtaken may say
	una  uint32 // the first number that is not acknowledged
	next uint32 // behind the last number that was sent
}

const (
	maxFlights = 1 << 14 // 256 KB
	// overtaken is by how many bytes acknowledgements may be overtaken by others:
	// what 10 Gbit/s carry in 800 µs.
	overtaken = 1 << 20
)

func newFlights(seed uint64) *flights {
	return &flights{seed: seed, list: make([]flight, maxFlights)}
}

// of returns the slot of a flow, in the direction in which this host sends it.
func (f *flights) of(flow *flowcell.FiveTuple) (*flight, uint32) {
	hash := flow.Hash(f.seed)
	return &f.list[hash>>50], uint32(hash) | 1
}

// sent takes note of a TCP packet, also of one without payload. It ignores resets, which
// answer packets of no connection. It is short so that callers inline it.
func (f *flights) sent(pkt *flowcell.Packet) {
	if f.on.Load() {
		f.record(pkt)
	}
}

func (f *flights) record(pkt *flowcell.Packet) {
	if !pkt.IsTCP() || pkt.Flags&flowcell.FlagRST != 0 {
		return
	}
	end := pkt.Seq + uint32(pkt.Payload)
	if pkt.Flags&flowcell.FlagFIN != 0 {
		end++
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, tag := f.of(&pkt.Flow)
	switch {
	case pkt.Flags&flowcell.FlagSYN != 0:
		*s = flight{tag, end + 1, pkt.Seq, end + 1}
	case s.tag != tag || end-s.una > 1<<31 && s.una-end > overtaken: // another flow, or what no window explains
		*s = flight{tag, pkt.Seq, pkt.Seq, end}
	case int32(end-s.next) > 0:
		s.next = end
	}
}

// acknowledged takes note that a packet which has come in acknowledges everything
// before ack. It reports whether its sender has seen what was sent.
func (f *flights) acknowledged(flow *flowcell.FiveTuple, ack uint32) bool {
	if !f.on.Load() {
		return false
	}
	out := flow.Reverse()
	f.mu.Lock()
	defer f.mu.Unlock()
	s, tag := f.of(&out)
	if s.tag != tag || ack-s.low > s.next-s.low {
		return false
	}
	if int32(ack-s.una) > 0 {
		s.una = ack
		if s.una-s.low > overtaken {
			s.low = s.una - overtaken
		}
	}
	return true
}

// has reports whether a sequence number of a flow is in flight: sent and not
// acknowledged.
func (f *flights) has(flow *flowcell.FiveTuple, seq uint32) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, tag := f.of(flow)
	return s.tag == tag && seq-s.una < s.next-s.una
}

// ackOf returns the acknowledgement number of a TCP packet that Parse has accepted;
// false if it has none.
func ackOf(pkt *flowcell.Packet, b []byte) (uint32, bool) {
	if pkt.Flags&flowcell.FlagACK == 0 {
		return 0, false
	}
	return binary.BigEndian.Uint32(b[transportAt(b)+8:]), true
}
