package reorder

import (
	"encoding/binary"
	"net/netip"
	"time"

	"weft/flowcell"
)

// Every packet is a full one of 10 Gbit/s Ethernet.
const (
	payload    = 1448
	headers    = 20 + 32 // IPv4, TCP with timestamps
	packetSize = headers + payload
	interval   = 1200 * time.Nanosecond // from one packet to the next
)

// batchSize is how many packets a read of the device brings.
const batchSize = 64

// batch is packets that were read together.
type batch struct {
	now      time.Duration // when they were read
	names    []int         // of the packets: their places in the input
	segments []flowcell.Packet
	// raw are the packets' bytes, in buffers that every batch uses again.
	raw   [][]byte
	parse bool // raw is to be parsed, segments are not given
}

func newBatch(parse bool) *batch {
	b := &batch{parse: parse}
	for range batchSize {
		buf := make([]byte, 2048)
		copy(buf, template)
		b.raw = append(b.raw, buf[:packetSize])
	}
	return b
}

// template is what all headers have in common. Checksums are missing: the
// measured implementations leave them to others.
var template = []byte{
	0x45, 0, packetSize >> 8, packetSize & 0xff, 0, 0, 0x40, 0, 64, flowcell.ProtoTCP, 0, 0,
	10, 1, 0, 0, 10, 0, 0, 2, // from, to
	0, 0, 443 >> 8, 443 & 0xff, 0, 0, 0, 0, 0, 0, 0, 1, // ports, sequence, acknowledged
	(headers - 20) / 4 << 4, flowcell.FlagACK, 0x10, 0, 0, 0, 0, 0,
	1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1,
}

// Flows come from 4,096 hosts and as many ports of these as are needed.
const (
	hosts     = 4096
	firstPort = 1024
	maxFlows  = hosts * (1<<16 - firstPort)
)

var senders = func() (list [hosts]flowcell.Address) {
	for i := range list {
		list[i] = flowcell.AddressFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
	}
	return list
}()

var receiver = flowcell.AddressFrom(netip.AddrFrom4([4]byte(template[16:20])))

// fill makes b the packets of in from place from on, as many as fit below to.
func (b *batch) fill(in []arrival, from, to int) {
	b.names, b.segments = b.names[:0], b.segments[:0]
	for i := from; i < min(to, from+batchSize); i++ {
		a := in[i]
		host, port := a.flow%hosts, uint16(firstPort+a.flow/hosts)
		sequence := a.segment * payload // wraps, as TCP's does
		b.names = append(b.names, i)
		b.segments = append(b.segments, flowcell.Packet{
			Flow: flowcell.FiveTuple{
				Src: senders[host], Dst: receiver,
				SrcPort: port, DstPort: 443, Proto: flowcell.ProtoTCP,
			},
			Length: packetSize, Seq: sequence, Payload: payload, ID: a.id, Flags: flowcell.FlagACK,
		})
		raw := b.raw[i-from]
		binary.BigEndian.PutUint16(raw[4:], a.id)
		binary.BigEndian.PutUint16(raw[14:], uint16(host))
		binary.BigEndian.PutUint16(raw[20:], port)
		binary.BigEndian.PutUint32(raw[24:], sequence)
	}
	b.now = time.Duration(from+len(b.names)) * interval
}
