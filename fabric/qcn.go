package fabric

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"weft/internal/qcn"
)

// QCN is the congestion point of quantized congestion notification on a port's virtual queue
// (IEEE 802.1Qau; thesis §5.3.3): packets with data of TCP over IPv4 that make the queue too long
// are sampled, and Notices says of which. Who reads them tells their senders. The zero value is
// none.
type QCN struct {
	// Target is the length of the queue that is sought, Q_eq. The thesis has 20 % of the
	// queue.
	Target QueueLength `json:"target"`

	// Weight is that of the queue's growth since the packet before, w: more than 0, at most 16.
	// 0 is 1, as the thesis has it; the standard has 2, for queues that are looked at less
	// often.
	Weight float64 `json:"weight,omitempty"`

	// The probability that a packet is sampled rises from MinP at no congestion to MaxP at the
	// level Plateau, of 63. 0 are 0.01, 0.2 and 32, which the thesis has found to be stable. A
	// super-segment is sampled as many times as often as it has segments.
	MinP    float64 `json:"min_p,omitempty"`
	MaxP    float64 `json:"max_p,omitempty"`
	Plateau int     `json:"plateau,omitempty"`

	// Seed is that of the random numbers. 0 takes one that nobody can guess.
	Seed uint64 `json:"seed,omitempty"`
}

// PortQCN is what QCN has done at a port.
type PortQCN struct {
	Target  uint64 `json:"target"`  // bytes
	Sampled uint64 `json:"sampled"` // packets
	Lost    uint64 `json:"lost"`    // sampled packets of which nobody was told: too many at once, or nobody reads
}

// Notice is a packet that was sampled.
type Notice struct {
	Port  int    // its interface index
	Level uint8  // |F_b|, 1 to 63
	Queue uint64 // bytes that it has found

	// Packet is the innermost IPv4 header without options, and the first 8 bytes of TCP: the
	// ports and the sequence number.
	Packet [28]byte
}

const maxQCNWeight = 16

// complete returns q at a port with its defaults filled in and its target in bytes.
func (q QCN) complete(rateBits float64, queueBytes int) (QCN, error) {
	if q == (QCN{}) {
		return q, nil
	}
	if q.Weight == 0 {
		q.Weight = 1
	}
	if q.MinP == 0 {
		q.MinP = 0.01
	}
	if q.MaxP == 0 {
		q.MaxP = 0.2
	}
	if q.Plateau == 0 {
		q.Plateau = 32
	}
	if err := q.Check(); err != nil {
		return q, err
	}
	q.Target = QueueLength{Bytes: q.Target.At(rateBits)}
	if q.Target.Bytes > queueBytes {
		return q, fmt.Errorf("QCN.Target is %d bytes, must be at most the queue's %d, which drops first; lower it", q.Target.Bytes, queueBytes)
	}
	return q, nil
}

// Check says what is wrong with q at ports of any rate, where all fields are given. Each error
// begins with the field's name, such as QCN.Target.
func (q QCN) Check() error {
	if err := q.Target.Check(); err != nil {
		return fmt.Errorf("QCN.Target %w", err)
	}
	switch {
	case q.Target == QueueLength{}:
		return fmt.Errorf("QCN.Target is 0, must be more")
	case !(q.Weight > 0 && q.Weight <= maxQCNWeight):
		return fmt.Errorf("QCN.Weight is %g, must be more than 0 and at most %d", q.Weight, maxQCNWeight)
	case !(q.MinP > 0 && q.MinP <= 1):
		return fmt.Errorf("QCN.MinP is %g, must be more than 0 and at most 1", q.MinP)
	case !(q.MaxP >= q.MinP && q.MaxP <= 1):
		return fmt.Errorf("QCN.MaxP is %g, must be from MinP, %g, to 1", q.MaxP, q.MinP)
	case q.Plateau < 1 || q.Plateau > qcn.MaxLevel:
		return fmt.Errorf("QCN.Plateau is %d, must be from 1 to %d", q.Plateau, qcn.MaxLevel)
	}
	return nil
}

// state is that of a completed q.
func (q QCN) state() qcn.Congestion {
	if q == (QCN{}) {
		return qcn.Congestion{}
	}
	for q.Seed == 0 { // from which the generator would not get away
		var b [8]byte
		rand.Read(b[:])
		q.Seed = binary.NativeEndian.Uint64(b[:])
	}
	return qcn.NewCongestion(qcn.Parameters{
		Target: uint64(q.Target.Bytes), Weight: q.Weight, MinP: q.MinP, MaxP: q.MaxP, Plateau: q.Plateau, Seed: q.Seed,
	})
}

// TellerStats counts what has become of notices.
type TellerStats struct {
	Told    uint64 `json:"told"`    // messages sent
	Bounded uint64 `json:"bounded"` // not sent: too many to the source, or in all
	Foreign uint64 `json:"foreign"` // not sent: the packet's source is no host, or cannot have sent it by that port
	Failed  uint64 `json:"failed"`  // that the kernel did not take

	Malformed uint64 `json:"malformed,omitempty"` // records of the meter's that are no notices
	Ended     string `json:"ended,omitempty"`     // why nobody is told any more
}
