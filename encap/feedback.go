package encap

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

const (
	// FeedbackPort is the UDP port at which hosts take feedback.
	FeedbackPort = 9340
	// MaxFeedbackLen is the length of signed feedback in bytes, without IP and UDP header.
	MaxFeedbackLen = feedbackLen + sha256.Size

	feedbackLen     = 40
	feedbackMagic   = 0x77667163 /* "wfqc" */
	feedbackVersion = 1
	// MaxFeedbackLevel is the strongest feedback: 6 bits.
	MaxFeedbackLevel = 63
)

// Errors about feedback, besides ErrTruncated. They are returned unwrapped.
var (
	ErrNotFeedback     = errors.New("encap: not a feedback message")
	ErrFeedbackVersion = errors.New("encap: unknown version of a feedback message")
	ErrFeedbackLevel   = errors.New("encap: level of a feedback message, must be from 1 to 63")
	ErrFeedbackKey     = errors.New("encap: feedback message without a known key")
	ErrFeedbackMAC     = errors.New("encap: feedback message with a wrong MAC")
)

// Feedback is what a switch tells the sender of a packet that makes one of its queues too long
// (the congestion notification message of IEEE 802.1Qau; thesis §5.3.3). It is the payload of a
// UDP datagram to FeedbackPort of the innermost packet's source. All is in network byte order:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                        Magic 77667163                         |
//	+---------------+---------------+---------------+---------------+
//	|   Version 1   |     Key       |     Level     |       0       |
//	+---------------+---------------+---------------+---------------+
//	|                             Queue                             |
//	+---------------------------------------------------------------+
//	|                Packet: IPv4 header, 20 bytes                  |
//	|                TCP ports and sequence number, 8 bytes         |
//	+---------------------------------------------------------------+
//	|         MAC: HMAC-SHA-256 of all before, if Key is not 0      |
//	+---------------------------------------------------------------+
//
// A receiver that acts on feedback must check the MAC. The packet alone does not keep forgers
// away: who knows a connection's ends hits what is in flight with one guess of some thousand.
// The sequence number bounds what a repeated message can do: it counts only while the packet is
// in flight. It also bounds those who have a switch sign messages about packets that they have
// sent with somebody else's address.
type Feedback struct {
	Level  uint8    // |F_b|, 1 to 63
	Queue  uint32   // bytes of queue that the packet has found, saturating; for people
	Packet [28]byte // the innermost IPv4 header without options, and 8 bytes of TCP
}

// Source is the packet's source.
func (f *Feedback) Source() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(f.Packet[12:])), binary.BigEndian.Uint16(f.Packet[20:]))
}

// Dest is the packet's destination.
func (f *Feedback) Dest() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(f.Packet[16:])), binary.BigEndian.Uint16(f.Packet[22:]))
}

// Seq is the packet's sequence number.
func (f *Feedback) Seq() uint32 { return binary.BigEndian.Uint32(f.Packet[24:]) }

// AppendFeedback appends a message to b. key is the number of the secret that it is signed
// with, 0 for none.
func AppendFeedback(b []byte, f Feedback, key uint8, secret []byte) ([]byte, error) {
	if f.Level < 1 || f.Level > MaxFeedbackLevel {
		return b, fmt.Errorf("%w: it is %d", ErrFeedbackLevel, f.Level)
	}
	n := len(b)
	b = binary.BigEndian.AppendUint32(b, feedbackMagic)
	b = append(b, feedbackVersion, key, f.Level, 0)
	b = binary.BigEndian.AppendUint32(b, f.Queue)
	b = append(b, f.Packet[:]...)
	if key == 0 {
		return b, nil
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(b[n:])
	return mac.Sum(b), nil
}

// ParseFeedback decodes a message. secret returns the secret of a key, nil if the receiver does
// not have it; key 0, which stands for none, passes only if secret itself is nil. Nothing is
// checked then, so that is for looking at messages, not for acting on them. It ignores bytes behind the message.
//
// Errors: ErrNotFeedback, ErrFeedbackVersion, ErrTruncated, ErrFeedbackLevel, ErrFeedbackKey,
// ErrFeedbackMAC.
func ParseFeedback(b []byte, secret func(key uint8) []byte) (f Feedback, err error) {
	switch {
	case len(b) < 4 || binary.BigEndian.Uint32(b) != feedbackMagic:
		return f, ErrNotFeedback
	case len(b) < feedbackLen:
		return f, ErrTruncated
	case b[4] != feedbackVersion:
		return f, ErrFeedbackVersion
	case b[6] < 1 || b[6] > MaxFeedbackLevel:
		return f, ErrFeedbackLevel
	}
	if secret != nil {
		s := secret(b[5])
		switch {
		case b[5] == 0 || s == nil:
			return f, ErrFeedbackKey
		case len(b) < MaxFeedbackLen:
			return f, ErrTruncated
		}
		mac := hmac.New(sha256.New, s)
		mac.Write(b[:feedbackLen])
		if !hmac.Equal(mac.Sum(nil), b[feedbackLen:MaxFeedbackLen]) {
			return f, ErrFeedbackMAC
		}
	}
	return Feedback{Level: b[6], Queue: binary.BigEndian.Uint32(b[8:]), Packet: [28]byte(b[12:])}, nil
}
