package reorder

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/stack/gro"
)

// gvisorGRO is the unchanged GRO of gVisor's netstack. It merges packets that follow each
// other, and delivers everything at the end of a batch. Packets out of order stay so. It
// parses headers by itself.
type gvisorGRO struct {
	gro.GRO
	prepared    []*stack.PacketBuffer
	out         []*stack.PacketBuffer
	beforeFlush int // delivered by then
	names       []int
	maxHeld     int // bytes
}

func newGvisorGRO() *gvisorGRO {
	s := &gvisorGRO{}
	s.Init(true)
	s.Dispatcher = s
	return s
}

func (s *gvisorGRO) prepare(b *batch) {
	s.prepared = s.prepared[:0]
	for i := range b.names {
		p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b.raw[i])})
		p.NetworkProtocolNumber = header.IPv4ProtocolNumber
		p.RXChecksumValidated = true // or it would sum up every packet
		s.prepared = append(s.prepared, p)
	}
}

func (s *gvisorGRO) push(*batch) {
	for _, p := range s.prepared {
		s.Enqueue(p)
	}
	s.beforeFlush = len(s.out)
	s.flush()
}

// flush calls Flush until nothing comes any more: one call delivers only the
// first packet of each bucket, since it takes the packet off the list and then
// asks it for the next.
func (s *gvisorGRO) flush() {
	for before := -1; before != len(s.out); {
		before = len(s.out)
		s.Flush()
	}
}

// DeliverNetworkPacket implements stack.NetworkDispatcher.
func (s *gvisorGRO) DeliverNetworkPacket(_ tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
	s.out = append(s.out, p.IncRef())
}

// DeliverLinkPacket implements stack.NetworkDispatcher.
func (*gvisorGRO) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// collect finds out from headers and lengths what the pieces consist of.
func (s *gvisorGRO) collect(b *batch) (names []int, pieces int, err error) {
	s.names = s.names[:0]
	held := len(b.names) * packetSize
	for i, p := range s.out {
		size := p.Data().Size()
		head, ok := p.Data().PullUp(headers)
		if !ok || (size-headers)%payload != 0 {
			return nil, 0, fmt.Errorf("delivered %d bytes", size)
		}
		seq := binary.BigEndian.Uint32(head[24:])
		for range (size - headers) / payload {
			at := find(b, head[12:24], seq, len(s.names))
			if at < 0 {
				return nil, 0, fmt.Errorf("delivered segment %d of %x, which it was not given", seq, head[12:24])
			}
			s.names = append(s.names, b.names[at])
			seq += payload
		}
		if i < s.beforeFlush {
			held -= (size - headers) / payload * packetSize
		}
	}
	if len(s.prepared) > 0 {
		s.maxHeld = max(s.maxHeld, held)
	}
	pieces = len(s.out)
	for _, list := range [][]*stack.PacketBuffer{s.out, s.prepared} {
		for _, p := range list {
			p.DecRef()
		}
	}
	s.out, s.prepared = s.out[:0], s.prepared[:0]
	return s.names, pieces, nil
}

// find returns the packet of b with these addresses and ports and this sequence
// number, and -1 if there is none. It begins with the hint-th.
func find(b *batch, flow []byte, seq uint32, hint int) int {
	for i := range b.names {
		at := (hint + i) % len(b.names)
		if b.segments[at].Seq == seq && bytes.Equal(b.raw[at][12:24], flow) {
			return at
		}
	}
	return -1
}

func (s *gvisorGRO) state() (int, error) { return s.maxHeld, nil }
