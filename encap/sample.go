package encap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"
)

const (
	// SamplePort is both UDP ports of every sample.
	SamplePort = 9337
	// SampleLen is the length of a sample in bytes, without the outer header.
	SampleLen = datagramHeaders + 32
	// QCMUnit is how many bytes of a queue count as one in Sample.Queue, unless a
	// switch's configuration says otherwise.
	QCMUnit = 1500
	// MaxQueue is the most that Sample.Queue holds: 7 bits, saturating.
	MaxQueue = 127
	// MaxSamplePath is the highest Path ID: 24 bits.
	MaxSamplePath = 1<<24 - 1
)

const (
	sampleVersion = 1
	sampleACK     = 0x80 // the type bit of the probe word: set in an answer

	// Offsets in the inner packet of the fields that change on the way.
	offSampleType   = datagramHeaders + 7 // with the metric
	offSampleMeters = datagramHeaders + 9
)

// ECT(0) is the TOS of data whose transport understands congestion marks: a sample
// queues, and is marked, as data would be.
var sampleDatagram = datagram{
	length: SampleLen, port: SamplePort, magic: 0x77666c73 /* "wfls" */, tos: byte(ECT0),
}

// Errors about samples, besides ErrTruncated and ErrChecksum. They are returned
// unwrapped.
var (
	ErrNotSample     = errors.New("encap: not a sample")
	ErrSampleVersion = errors.New("encap: unknown version of a sample")
	ErrSampleType    = errors.New("encap: an answer where a probe was expected")
)

// Sample is a packet that measures how congested a path is, or the answer to one (Luopan
// §3.1). It is the inner packet of any carrier: IPv4 without options, UDP from SamplePort
// to SamplePort, and a payload of 32 bytes:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                        Magic 77666c73                         |
//	+-----------------------------------------------+-+-------------+
//	|                    Path ID                    |T|     QCM     |
//	+---------------+---------------+---------------+---------------+
//	|   Version 1   |     Meters    |     Marked    |       0       |
//	+---------------+---------------+---------------+---------------+
//	|                             Token                             |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                            Received                           |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                               0                               |
//	+---------------------------------------------------------------+
//
// All in network byte order. The second word is the paper's, bit by bit (Fig. 5); the paper
// has it before the IP header, where only switches made for it would look. Here it stands
// behind the IP header, since routers forward by IP. The other fields replace what the
// paper takes for granted. The token keeps others from answering, and anybody from
// answering twice. Meters says whether switches write a metric at all. Received and Marked
// tell something where they do not.
type Sample struct {
	Path   uint32 // the path's number for the pair of hosts, at most MaxSamplePath
	ACK    bool   // type: false a probe, true its answer
	Queue  uint8  // QCM: the sum of the queues on the way in QCMUnit, at most MaxQueue
	Meters uint8  // how many switches have added to Queue, saturating at 255
	Marked bool   // of an answer: the probe came with a congestion mark
	// Token is the prober's own and comes back unchanged. Hosts that do not see the probe
	// must not be able to guess it.
	Token uint64
	// Received is when the probe came in, by the answerer's clock, which has an origin of
	// its own. It is 0 in a probe. A foreign answer may have any value, also below 0.
	Received time.Duration
	From, To netip.Addr // IPv4
}

// AppendSample appends a whole inner packet to b. It fails if a field is out of range;
// the error names the field, and b is returned unchanged. In a probe, Marked and Received
// are left out. It allocates only if b has no room for SampleLen bytes.
func AppendSample(b []byte, s Sample) ([]byte, error) {
	s.From, s.To = s.From.Unmap(), s.To.Unmap()
	switch {
	case !s.From.Is4():
		return b, fmt.Errorf("encap: a sample's From %v is not IPv4", s.From)
	case !s.To.Is4():
		return b, fmt.Errorf("encap: a sample's To %v is not IPv4", s.To)
	case s.Path > MaxSamplePath:
		return b, fmt.Errorf("encap: a sample's Path is %d, must be at most %d", s.Path, MaxSamplePath)
	case s.Queue > MaxQueue:
		return b, fmt.Errorf("encap: a sample's Queue is %d, must be at most %d", s.Queue, MaxQueue)
	}
	n := len(b)
	b = append(b, make([]byte, SampleLen)...)
	s.put((*[SampleLen]byte)(b[n:]))
	return b, nil
}

// put writes all of a packet whose bytes are 0.
func (s *Sample) put(b *[SampleLen]byte) {
	payload := b[datagramHeaders:]
	binary.BigEndian.PutUint32(payload[4:], s.Path<<8|uint32(s.Queue))
	payload[8] = sampleVersion
	payload[9] = s.Meters
	binary.BigEndian.PutUint64(payload[12:], s.Token)
	if s.ACK {
		payload[7] |= sampleACK
		if s.Marked {
			payload[10] = 1
		}
		binary.BigEndian.PutUint64(payload[20:], uint64(s.Received))
	}
	sampleDatagram.finish(b[:], s.From.As4(), s.To.As4())
}

// IsSample reports whether a packet claims to be a sample: IPv4 without options,
// no fragment, with a sample's length, ports and magic. It is for the hot path:
// other packets fail its first comparisons.
func IsSample(packet []byte) bool { return sampleDatagram.is(packet) }

// ParseSample checks a whole inner packet, its checksums included, and decodes it. It
// ignores bytes behind the packet's end (padding) and fields that are 0 today.
//
// Errors: ErrNotSample for packets that IsSample refuses, ErrTruncated, ErrChecksum,
// ErrSampleVersion.
func ParseSample(packet []byte) (Sample, error) {
	if !IsSample(packet) {
		return Sample{}, ErrNotSample
	}
	b := (*[SampleLen]byte)(packet)
	if err := sampleDatagram.check(b[:]); err != nil {
		return Sample{}, err
	}
	payload := b[datagramHeaders:]
	if payload[8] != sampleVersion {
		return Sample{}, ErrSampleVersion
	}
	s := Sample{
		Path:   binary.BigEndian.Uint32(payload[4:]) >> 8,
		ACK:    payload[7]&sampleACK != 0,
		Queue:  payload[7] & MaxQueue,
		Meters: payload[9],
		Token:  binary.BigEndian.Uint64(payload[12:]),
		From:   netip.AddrFrom4([4]byte(b[12:])),
		To:     netip.AddrFrom4([4]byte(b[16:])),
	}
	if s.ACK {
		s.Marked = payload[10] != 0
		s.Received = time.Duration(binary.BigEndian.Uint64(payload[20:]))
	}
	return s, nil
}

// AnswerSample turns a probe into its answer, in place, and returns the number of the
// path by which the answer goes back. received is when the probe came in, by the caller's
// clock. It must not be 0, and the clock must be the same for all answers. Path, Queue,
// Meters and Token stay. Marked says whether the probe came with a congestion mark. Only
// the owner of the probe's destination address may answer. An answer is as long as its
// probe and goes to the address that the probe claims as its source, so answering
// amplifies nothing. The caller bounds its rate.
//
// Errors are ParseSample's, and ErrSampleType if the packet is an answer. The packet is
// then unchanged.
func AnswerSample(packet []byte, received time.Duration) (path uint32, err error) {
	s, err := ParseSample(packet)
	if err != nil {
		return 0, err
	}
	if s.ACK {
		return 0, ErrSampleType
	}
	s.ACK, s.Marked, s.Received = true, ECN(packet[1]&ecnMask) == CE, received
	s.From, s.To = s.To, s.From
	b := (*[SampleLen]byte)(packet)
	*b = [SampleLen]byte{} // a fresh TTL, and TOS: the mark was the probe's own
	s.put(b)
	return s.Path, nil
}

// AddQueue does a switch's part when a packet, outer headers included, joins a queue. If
// the packet is a probe, it adds units to Queue and 1 to Meters, both saturating, and
// updates the UDP checksum. It reports whether the packet was a probe. Answers pass
// unchanged, since they report what the probe has met.
//
// It finds a probe behind no outer header, behind one or two of IPv4 without options, or
// behind one of IPv6 (RFC 2003, RFC 2473). It ignores checksums.
func AddQueue(packet []byte, units int) bool {
	b := sampleBehind(packet)
	if b == nil || b[offSampleType]&sampleACK != 0 {
		return false
	}
	from := binary.BigEndian.Uint16(b[offSampleType-1:])
	units = min(max(units, 0), MaxQueue)
	b[offSampleType] = byte(min(int(b[offSampleType])+units, MaxQueue))
	to := binary.BigEndian.Uint16(b[offSampleType-1:])

	meters := binary.BigEndian.Uint16(b[offSampleMeters-1:])
	b[offSampleMeters] = byte(min(int(b[offSampleMeters])+1, math.MaxUint8))

	if c := binary.BigEndian.Uint16(b[offDatagramSum:]); c != 0 {
		c = update(c, from, to)
		c = update(c, meters, binary.BigEndian.Uint16(b[offSampleMeters-1:]))
		binary.BigEndian.PutUint16(b[offDatagramSum:], unzero(c))
	}
	return true
}

// sampleBehind returns the sample behind a packet's outer headers, or nil.
func sampleBehind(packet []byte) []byte {
	if len(packet) >= 40 && packet[0]>>4 == 6 {
		if packet[6] != protoIPIP {
			return nil
		}
		packet = packet[40:]
	} else {
		for range 2 {
			if len(packet) < 20 || packet[0] != 0x45 || packet[9] != protoIPIP ||
				binary.BigEndian.Uint16(packet[6:])&fragmentMask != 0 {
				break
			}
			packet = packet[20:]
		}
	}
	if !IsSample(packet) {
		return nil
	}
	return packet[:SampleLen]
}
