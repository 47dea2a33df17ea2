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
	// Host says whether an address is a host's whose packets can leave by a port, and which
	// may be told; nil: all may be. The port is "" if the meter has it no more. The Teller's
	// goroutine calls it for each message.
	Host func(source netip.Addr, port string) bool
	// Key returns the number, more than 0, and secret that messages are signed with: hosts
	// believe no others. It is called for each message, by the Teller's goroutine. Where the
	// number is 0 nothing is sent, which counts as failed.
	Key func() (id uint8, secret []byte)
	// Ended is called by the Teller's goroutine if it ends before Close, with the reason; it
	// must not call Close. nil: nobody wants to know.
	Ended func(error)

	now func() time.Duration // of the bounds; nil: time since Tell
}

// Teller tells the senders of the packets that a Meter's congestion points sample
// (encap.Feedback), by UDP from the switch's own address. Stats is safe for concurrent use.
type Teller struct {
	config  TellerConfig
	meter   *Meter
	notices *Notices
	socket  *net.UDPConn
	seed    maphash.Seed
	total   bucket.Bucket
	sources [tellSlots]bucket.Bucket
	ended   chan struct{}
	err     atomic.Pointer[error] // why it has ended by itself
	closing sync.Once

	told, bounded, foreign, failed, malformed atomic.Uint64
}

// Tell begins to tell, from the network namespace of the calling thread. It needs no
// capability. Close it before the Meter.
func (m *Meter) Tell(c TellerConfig) (*Teller, error) {
	if c.Key == nil {
		return nil, errors.New("feedback to senders: Key is nil, and hosts believe signed messages alone; set it")
	}
	t := newTeller(m, c)
	var err error
	if t.notices, err = m.Notices(); err != nil {
		return nil, err
	}
	if t.socket, err = tellerSocket(); err != nil {
		return nil, errors.Join(kernel.Explain(fmt.Errorf("feedback to senders: %w", err)), t.notices.Close())
	}
	go t.run(t.notices.Next)
	return t, nil
}

// newTeller does not run yet.
func newTeller(m *Meter, c TellerConfig) *Teller {
	t := &Teller{config: c, meter: m, seed: maphash.MakeSeed(), ended: make(chan struct{}),
		total: bucket.New(tellTotal, tellBurst)}
	if start := time.Now(); c.now == nil {
		t.config.now = func() time.Duration { return time.Since(start) }
	}
	for i := range t.sources {
		t.sources[i] = bucket.New(tellSource, tellBurst)
	}
	return t
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

// run tells of what next returns.
func (t *Teller) run(next func() (Notice, error)) {
	defer close(t.ended)
	var b []byte
	for {
		n, err := next()
		switch {
		case errors.Is(err, errShortNotice):
			t.malformed.Add(1)
		case errors.Is(err, ErrNoticesClosed):
			return
		case err != nil:
			t.err.Store(&err)
			if t.config.Ended != nil {
				t.config.Ended(err)
			}
			return
		default:
			b = t.tell(b[:0], n)
		}
	}
}

// tell sends a message in b, which it returns.
func (t *Teller) tell(b []byte, n Notice) []byte {
	f := encap.Feedback{Level: n.Level, Queue: uint32(min(n.Queue, 1<<32-1)), Packet: n.Packet}
	to := f.Source().Addr()
	if t.config.Host != nil && !t.config.Host(to, t.meter.portName(n.Port)) || to.IsUnspecified() || to.IsMulticast() || to.IsLoopback() {
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
	now := t.config.now()
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
	s := TellerStats{Told: t.told.Load(), Bounded: t.bounded.Load(), Foreign: t.foreign.Load(), Failed: t.failed.Load(), Malformed: t.malformed.Load()}
	if err := t.err.Load(); err != nil {
		s.Ended = (*err).Error()
	}
	return s
}

// Close ends telling. It returns why that had ended before, if it had.
func (t *Teller) Close() (err error) {
	t.closing.Do(func() { err = errors.Join(t.notices.Close(), t.socket.Close()) })
	<-t.ended
	if early := t.err.Load(); early != nil {
		err = errors.Join(err, *early)
	}
	return err
}
