package dataplane

import (
	"encoding/binary"

	"weft/flowcell"
	"weft/gso"
	"weft/link"
	"weft/resequencer/gro"
)

// source reads packets from below, a batch at a time.
type source interface {
	// read waits for packets and reads them into bufs, which have the lengths that
	// batch says.
	read(bufs [][]byte) error
	// filled reports whether the last read filled all buffers, so that more may wait.
	filled() bool
	// waited reports whether the last read found nothing at first, as far as the device tells.
	waited() bool
	// next returns the next packet of the batch, in the order of arrival.
	next() (Arrived, bool)
	// batch returns how many buffers read wants, and how long they must be, in bytes.
	batch() (n, size int)
}

// Arrived is a packet from its source. The bytes are untrusted. They may be written to.
type Arrived struct {
	Bytes    []byte
	Slot     int  // of the buffer that b lies in
	Alone    bool // no other packet lies there
	MSS      int  // payload of the segments of a super-segment; 0 for a single packet
	rest     bool // of a packet that was divided on arrival; another piece of it came before
	verified bool // the transport's checksum is known to be right
	vnet     link.VnetHeader

	// What a tunnel's header says in place of the packet.
	numbered bool
	number   flowcell.Number
	sequence uint32 // in its flow, 0 if it has none
}

// newSource returns the tunnel's source if there is a tunnel, else the best that a
// device has.
func newSource(d Device, t *tunnel) source {
	if t != nil {
		return newTunnelSource(t)
	}
	if s := super(d); s != nil {
		return newSuperSource(s)
	}
	return newPlainSource(d)
}

// waits reports whether a device's last read found nothing at first. false if it does not tell.
func waits(device any) bool {
	d, ok := device.(interface{ Waited() bool })
	return ok && d.Waited()
}

// plainSource reads from a Device.
type plainSource struct {
	dev   Device
	bufs  [][]byte
	sizes []int
	n, at int
}

// plainBatch is the most packets that are read from a Device in one call.
const plainBatch = 64

func newPlainSource(d Device) *plainSource {
	return &plainSource{dev: d, sizes: make([]int, plainBatch)}
}

func (s *plainSource) batch() (n, size int) { return plainBatch, s.dev.MTU() }

func (s *plainSource) read(bufs [][]byte) (err error) {
	s.bufs, s.at = bufs, 0
	s.n, err = s.dev.Read(bufs, s.sizes, 0)
	return err
}

func (s *plainSource) filled() bool { return s.n == len(s.bufs) }
func (s *plainSource) waited() bool { return waits(s.dev) }

func (s *plainSource) next() (a Arrived, ok bool) {
	if s.at == s.n {
		return a, false
	}
	i := s.at
	s.at++
	return Arrived{Bytes: s.bufs[i][:s.sizes[i]], Slot: i, Alone: true}, true
}

// superSource reads from a SuperDevice.
type superSource struct {
	dev   SuperDevice
	bufs  [][]byte
	sizes []int
	n, at int

	datagrams gso.Segmenter // of the packet before at, if it was many
	datagram  []byte
	rest      bool // the first of them has been given away

	size  int           // of buffers
	longs gso.Segmenter // of the packet before at, if it was longer than a packet can say
	long  Arrived       // the next part, but for its bytes
	step  flowcell.Number
}

const (
	// superBatch is the most packets that are read from a SuperDevice in one call. They
	// take half a megabyte, which fits into the cache next to a core, unless buffers are longer.
	superBatch = 8
	// SuperBuffer is the length of a buffer for super-segments, in bytes: the largest
	// that gVisor keeps for reuse. The longest packet is a little shorter. The kernel's
	// longest super-segments have 65,226 bytes (GSO_LEGACY_MAX_SIZE less MAX_TCP_HEADER).
	SuperBuffer = 1 << 16
)

func newSuperSource(d SuperDevice) *superSource {
	return &superSource{dev: d, sizes: make([]int, superBatch), datagram: make([]byte, SuperBuffer), size: SuperBuffer}
}

// upTo has the source read super-segments of so many bytes, which it divides into such as have a
// length in their headers.
func (s *superSource) upTo(longest int) *superSource {
	s.size = max(s.size, longest+link.SuperHeadroom)
	return s
}

func (s *superSource) batch() (n, size int) { return superBatch, s.size }

func (s *superSource) read(bufs [][]byte) (err error) {
	s.bufs, s.at = bufs, 0
	s.n, err = s.dev.ReadSuper(bufs, s.sizes, link.SuperHeadroom)
	return err
}

func (s *superSource) filled() bool { return s.n == len(s.bufs) }
func (s *superSource) waited() bool { return waits(s.dev) }

func (s *superSource) next() (a Arrived, ok bool) {
	if n := s.datagrams.Next(s.datagram); n > 0 {
		a = Arrived{Bytes: s.datagram[:n], Slot: lent, rest: s.rest, verified: true}
		s.rest = true
		return a, true
	}
	if s.longs.Left() > 0 {
		return s.divided(), true
	}
	if s.at == s.n {
		return a, false
	}
	i := s.at
	s.at++
	buf := s.bufs[i]
	// A short packet does not keep a long buffer.
	a = Arrived{Bytes: buf[link.SuperHeadroom : link.SuperHeadroom+s.sizes[i]], Slot: i, Alone: s.size == SuperBuffer}
	h := link.ParseVnetHeader((*[link.VnetHeaderLen]byte)(buf[link.SuperHeadroom-link.VnetHeaderLen:]))
	if h.Check(len(a.Bytes)) != nil {
		a.Bytes = nil // counted as malformed
		return a, true
	}
	a.vnet = h
	a.verified = h.Flags&(link.VnetNeedsCsum|link.VnetDataValid) != 0
	switch {
	case !h.GSO():
	case h.GSOType&^link.VnetGSOECN == link.VnetGSOUDP: // nobody above wants them as one
		if s.datagrams.Start([][]byte{a.Bytes}, int(h.GSOSize), gso.Complete) == nil {
			s.rest = false
			return s.next()
		}
		a.Bytes = nil
	case len(a.Bytes) > link.MaxSuperLen:
		if s.divide(&a) {
			return s.divided(), true
		}
		a.Bytes = nil
	default:
		a.MSS = int(h.GSOSize)
	}
	return a, true
}

// divide begins to divide a super-segment of TCP whose header has no length. Its parts have
// whole segments, and the numbers that a device would have given these. The checksum is not
// computed again, so it must be right.
func (s *superSource) divide(a *Arrived) bool {
	size := int(a.vnet.GSOSize)
	segments := (link.MaxSuperLen - MaxHeaders) / size
	if !a.verified || s.longs.Start([][]byte{a.Bytes}, segments*size, gso.Partial) != nil {
		return false
	}
	s.step = flowcell.Number(segments)
	s.long = Arrived{Slot: lent, MSS: size, verified: true, vnet: a.vnet,
		numbered: true, number: flowcell.Number(binary.BigEndian.Uint16(a.Bytes[4:]))}
	return true
}

// divided returns the next part.
func (s *superSource) divided() Arrived {
	a, headers := s.long, s.longs.HeaderLen()
	a.Bytes = s.datagram[:s.longs.Next(s.datagram)]
	kind := a.vnet.GSOType
	if a.vnet = partialHeader(a.Bytes, flowcell.ProtoTCP); len(a.Bytes) > headers+a.MSS {
		a.vnet.GSOType, a.vnet.GSOSize, a.vnet.HdrLen = kind, uint16(a.MSS), uint16(headers)
	} else {
		a.MSS = 0
	}
	s.long.rest = true
	s.long.number += s.step
	return a
}

// superHeader returns the header of a train that has been finished.
func superHeader(b []byte, t *gro.Train) link.VnetHeader {
	h := partialHeader(b, flowcell.ProtoTCP)
	h.GSOType, h.GSOSize, h.HdrLen = link.VnetGSOTCPv4, uint16(t.MSS()), uint16(t.HeaderLen())
	if b[0]>>4 == 6 {
		h.GSOType = link.VnetGSOTCPv6
	}
	return h
}

// partialHeader returns the header of a packet whose checksum remains to be
// completed. Parse has accepted the packet; it is TCP or UDP and no fragment.
func partialHeader(b []byte, protocol uint8) link.VnetHeader {
	h := link.VnetHeader{Flags: link.VnetNeedsCsum, CsumStart: uint16(transportAt(b)), CsumOffset: tcpChecksumAt}
	if protocol == flowcell.ProtoUDP {
		h.CsumOffset = udpChecksumAt
	}
	return h
}
