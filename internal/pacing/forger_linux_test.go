package pacing

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/kernel/kerneltest"
	"weft/internal/qcn"
)

// Messages that an outsider makes up slow nobody, though they go over all sequence numbers, of
// which some are in flight: he has no key. They cost no look at the kernel's sockets. Nor does one
// who has the key slow another host's connections.
func TestHost_believesNoOutsider(t *testing.T) {
	b := newBed(t, "fabric-rate=100,core-rate=100")
	h := b.reactionPoints(secretOf)
	c := b.stream()
	local, remote := c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()
	time.Sleep(200 * time.Millisecond)
	// A step is less than what is in flight or was a moment ago, so that some guesses are right.
	const step = 1 << 17
	b.do(b.to.ID, func() error { return forge(local, remote, b.from.Addr, step) })
	kerneltest.Within(t, kerneltest.Patience, "the messages are read", func() bool {
		s := h.Stats()
		return s.Malformed+s.Dropped+s.Stale+s.Believed+s.Answered+s.Unknown+s.Overflow >= (1<<32/step)/2 && s.Foreign > 0
	})
	if s := h.Stats(); s.Believed != 0 || s.Stale != 0 || s.Limited != 0 || s.Rounds != 0 {
		t.Errorf("%+v", s)
	}
}

// forge sends made-up messages about a connection, each with a number that is step further:
// unsigned, signed with another secret, with a key that there is not, and cut short. The last few
// are signed as they should be, and about another host's packets.
func forge(local, remote netip.AddrPort, to netip.Addr, step uint32) error {
	c, err := net.Dial("udp4", netip.AddrPortFrom(to, encap.FeedbackPort).String())
	if err != nil {
		return err
	}
	defer c.Close()
	send := func(seq uint32, kind int) error {
		f := encap.Feedback{Level: encap.MaxFeedbackLevel}
		f.Packet[0] = 0x45
		from, dest := local.Addr().Unmap().As4(), remote.Addr().Unmap().As4()
		copy(f.Packet[12:], from[:])
		copy(f.Packet[16:], dest[:])
		binary.BigEndian.PutUint16(f.Packet[20:], local.Port())
		binary.BigEndian.PutUint16(f.Packet[22:], remote.Port())
		binary.BigEndian.PutUint32(f.Packet[24:], seq)
		key, secret := uint8(3), []byte("abcdef0123456789abcdef0123456789")
		switch kind {
		case 0:
			key = 0
		case 1:
			key = 4
		case 2:
			f.Packet[15]++ // another host's
			secret = secretOf(key)
		}
		message, err := encap.AppendFeedback(nil, f, key, secret)
		if err == nil {
			_, err = c.Write(message[:len(message)-kind/4])
		}
		return err
	}
	for seq := uint64(0); seq < 1<<32; seq += uint64(step) {
		if err := send(uint32(seq), []int{0, 1, 3, 4}[seq/uint64(step)%4]); err != nil {
			return err
		}
		if seq/uint64(step)%16 == 0 { // no faster than they are read
			time.Sleep(time.Millisecond)
		}
	}
	for range 10 {
		if err := send(0, 2); err != nil {
			return err
		}
	}
	return nil
}

// A host without a secret is none: anybody could slow its connections.
func TestOpen_needsASecret(t *testing.T) {
	_, err := Open(Config{Address: netip.MustParseAddr("127.0.0.1"), Reactions: qcn.Config{Floor: 1, Limit: 2}})
	if err == nil || !strings.Contains(err.Error(), "Secret is nil") {
		t.Error(err)
	}
}
