package gro

import "encoding/binary"

// MaxLength is the greatest length of a super-segment in bytes, IP header included. It is
// Linux's, and the most that IPv4's length field can hold.
const MaxLength = 65535

// Train is a super-segment under construction. Call Add for each packet in order. When it
// returns false, the train is complete: call Finish, pass the train on, and Start the
// next one with the packet that did not fit.
//
// A Train reads only the headers of the packets, writes only in Finish, and keeps no
// reference. It believes the lengths in the headers: the caller has checked that the
// payload is there and that checksums are right. Bytes behind the packet's end, such as
// an Ethernet frame's padding, must not be joined.
//
// The zero Train is empty. It never allocates. It is not safe for concurrent use.
type Train struct {
	header
	length   int // bytes of the IP packet
	mss      int // payload of every segment but the last
	packets  int
	segments int
	next     uint32 // the sequence number that continues the train
	flags    uint8  // of the last packet
	open     bool   // no packet has ended it
}

// Start makes b the first packet of a new train and forgets the one before. Any bytes are
// accepted: a packet that cannot be merged makes a train that nothing continues.
//
// gsoSize is the payload of a segment, in bytes, if b is itself a super-segment (gso_size
// of virtio_net_hdr). It is 0 if b is one segment or the caller does not know.
func (t *Train) Start(b []byte, gsoSize int) {
	seq, payload := t.read(b)
	t.packets, t.segments = 1, 1
	t.mss, t.open = 0, false
	if payload == 0 {
		return
	}
	t.length = t.size
	t.mss = segment(payload, gsoSize)
	t.next = seq
	t.segments = 0
	t.join(payload, b[t.ipSize+13])
}

// Add reports whether b continues the train. If it does, the train includes b, and the
// caller joins b's payload, which is b without its first HeaderLen bytes. If not, the
// train is unchanged. gsoSize is as in Start.
func (t *Train) Add(b []byte, gsoSize int) bool {
	if !t.open || len(b) < t.size {
		return false
	}
	// A packet whose header equals the first one's can be merged as that one could:
	// the fields that header.read has checked are not checked again.
	var length int
	var diff uint64
	if t.ipSize == ipv4Header {
		length = int(binary.BigEndian.Uint16(b[2:]))
		first, second, dst := words4(b)
		diff = (first ^ t.ip[0]) | (second ^ t.ip[1]) | (dst ^ t.ip[2])
	} else {
		length = ipv6Header + int(binary.BigEndian.Uint16(b[4:]))
		first, src1, src2, dst1, dst2 := words6(b)
		diff = (first ^ t.ip[0]) | (src1 ^ t.ip[1]) | (src2 ^ t.ip[2]) | (dst1 ^ t.ip[3]) | (dst2 ^ t.ip[4])
	}
	tcp := b[t.ipSize:t.size]
	ports, seq, ack, rest := wordsTCP(tcp)
	diff |= uint64((ports^t.ports)|(seq^t.next)|(ack^t.ack)) | (rest ^ t.rest)
	options := tcp[tcpHeader:]
	if diff != 0 || string(options) != string(t.options[:len(options)]) {
		return false
	}
	payload := length - t.size
	if payload <= 0 || t.length+payload > MaxLength {
		return false
	}
	if mss := segment(payload, gsoSize); mss > t.mss || mss < t.mss && mss < payload {
		return false
	}
	t.packets++
	t.join(payload, tcp[13])
	return true
}

// segment is the payload of each segment of a packet but the last.
func segment(payload, gsoSize int) int {
	if 0 < gsoSize && gsoSize < payload {
		return gsoSize
	}
	return payload
}

// join counts a packet that continues the train.
func (t *Train) join(payload int, flags uint8) {
	t.length += payload
	t.next += uint32(payload)
	t.flags = flags
	t.open = flags&last == 0
	if payload == t.mss { // and no division
		t.segments++
		return
	}
	t.segments += (payload + t.mss - 1) / t.mss
	t.open = t.open && payload%t.mss == 0
}

// Segments is the number of segments in the train, 0 if it is empty.
func (t *Train) Segments() int { return t.segments }

// MSS is the payload, in bytes, of every segment but the last, which may have
// less: virtio_net_hdr's gso_size. It is 0 if the train is a packet that cannot
// be merged.
func (t *Train) MSS() int { return t.mss }

// HeaderLen is the length in bytes of the IP and TCP headers of every packet of the
// train: virtio_net_hdr's hdr_len. It is 0 if the train is a packet that cannot be
// merged.
func (t *Train) HeaderLen() int { return t.size }
