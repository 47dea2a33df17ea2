package fabric

import (
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/internal/bucket"
	"weft/internal/kernel"
)

// Bounds of what a Teller sends, in messages a second. Those of sources that share a slot by
// their hashes count together.
const (
	tellTotal  = 5000
	tellSource = 500
	tellBurst  = 20 * time.Millisecond
	tellSlots  = 4096
)

// TellerConfig configures a Teller.
type TellerConfig struct {
	// Host says whether an address is a host's that may be told; nil: all may be.
	Host func(netip.Addr) bool
	// Key returns the number, more than 0, and secret that messages are signed with: hosts
	// believe no others. It is called for each message, by the Teller's goroutine. Where the
	// number is 0 nothing is sent, which counts as failed.
	Key func() (id uint8, secret []byte)
}

// Teller tells the senders of the packets that a Meter's congestion points sample
// (encap.Feedback), by UDP from the switch's own address. Stats is safe for concurrent use.
type Teller struct {
	config  TellerConfig
	notices *Notices
	socket  *net.UDPConn
	start   time.Time
	seed    maphash.Seed
	total   bucket.Bucket
	sources [tellSlots]bucket.Bucket
	ended   chan struct{}
	err     error // why it has ended; read it after ended
	closing sync.Once

	told, bounded, foreign, failed atomic.Uint64
}

// Tell begins to tell, from the network namespace of the calling thread. It needs no
// capability. Close it before the Meter.
func (m *Meter) Tell(c TellerConfig) (*Teller, error) {
	if c.Key == nil {
		return nil, errors.New("feedback to senders: Key is nil, and hosts believe signed messages alone; set it")
	}
	t := &Teller{config: c, start: time.Now(), seed: maphash.MakeSeed(), ended: make(chan struct{}),
		total: bucket.New(tellTotal, tellBurst)}
	for i := range t.sources {
		t.sources[i] = bucket.New(tellSource, tellBurst)
	}
	var err error
	if t.notices, err = m.Notices(); err != nil {
		return nil, err
	}
	if t.socket, err = tellerSocket(); err != nil {
		return nil, errors.Join(kernel.Explain(fmt.Errorf("feedback to senders: %w", err)), t.notices.Close())
	}
	go t.run()
	return t, nil
}

// tellerSocket is an unbound one whose datagrams overtake data where switches let them.
func tellerSocket() (*net.UDPConn, error) {
	c, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return nil, err
	}
	raw, err := c.SyscallConn()
	if err == nil {
		err = errors.Join(err, raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, encap.ProbeTOS)
		}))
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (t *Teller) run() {
	defer close(t.ended)
	var b []byte
	for {
		n, err := t.notices.Next()
		if err != nil {
			if !errors.Is(err, ErrNoticesClosed) {
				t.err = err
			}
			return
		}
		b = t.tell(b[:0], n)
	}
}

// tell sends a message in b, which it returns.
func (t *Teller) tell(b []byte, n Notice) []byte {
	f := encap.Feedback{Level: n.Level, Queue: uint32(min(n.Queue, 1<<32-1)), Packet: n.Packet}
	to := f.Source().Addr()
	if t.config.Host != nil && !t.config.Host(to) || to.IsUnspecified() || to.IsMulticast() || to.IsLoopback() {
		t.foreign.Add(1)
		return b
	}
	if !t.may(to) {
		t.bounded.Add(1)
		return b
	}
	id, secret := t.config.Key()
	b, err := encap.AppendFeedback(b, f, id, secret)
	if err == nil && id != 0 {
		_, err = t.socket.WriteToUDPAddrPort(b, netip.AddrPortFrom(to, encap.FeedbackPort))
	}
	if err != nil || id == 0 {
		t.failed.Add(1)
	} else {
		t.told.Add(1)
	}
	return b
}

// may reports whether a source may be told once more.
func (t *Teller) may(to netip.Addr) bool {
	var hash maphash.Hash
	hash.SetSeed(t.seed)
	a := to.As4()
	hash.Write(a[:])
	now := time.Since(t.start)
	source := &t.sources[hash.Sum64()%tellSlots]
	if !source.Take(1, now) {
		return false
	}
	if !t.total.Take(1, now) {
		source.Give(1)
		return false
	}
	return true
}

// Stats returns the counters.
func (t *Teller) Stats() TellerStats {
	return TellerStats{Told: t.told.Load(), Bounded: t.bounded.Load(), Foreign: t.foreign.Load(), Failed: t.failed.Load()}
}

// Close ends telling. It returns why that had ended before, if it had.
func (t *Teller) Close() (err error) {
	t.closing.Do(func() { err = errors.Join(t.notices.Close(), t.socket.Close()) })
	<-t.ended
	return errors.Join(err, t.err)
}
