package pacing

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"weft/encap"
	"weft/internal/hostprog"
	"weft/internal/kernel"
	"weft/internal/qcn"
)

const (
	// leastRound is between two rounds while flows are limited.
	leastRound = 5 * time.Millisecond
	// share is of the time that rounds take at most: one part in so many.
	share = 4
	// maxWaiting bounds the messages that wait for a round.
	maxWaiting = 256
)

// Config configures a Host.
type Config struct {
	Address   netip.Addr // this host's own, IPv4, at which switches reach it
	Reactions qcn.Config // Limit at most hostprog.MaxPaceRate
	// Secret is that of the first SetSecret. It must not be nil.
	Secret func(key uint8) []byte
}

// Stats is what a Host has done.
type Stats struct {
	qcn.Stats
	Limited   int    `json:"limited"`   // connections that are at the moment
	Malformed uint64 `json:"malformed"` // messages that are none, or not signed as they should be
	Foreign   uint64 `json:"foreign"`   // messages about another host's packets
	Dropped   uint64 `json:"dropped"`   // messages that came while too many waited
	Rounds    uint64 `json:"rounds"`
	Error     string `json:"error,omitempty"` // of the latest round; the next one tries again
}

// Host slows this host's connections until Close. Stats and SetSecret are safe for concurrent
// use.
type Host struct {
	config    Config
	socket    *net.UDPConn
	pacer     *hostprog.Pacer
	reactions *qcn.Reactions
	start     time.Time
	waiting   chan qcn.Message
	ended     chan struct{}
	secret    atomic.Pointer[func(key uint8) []byte]

	mu    sync.Mutex
	stats Stats
}

// Open begins, in the network namespace of the calling thread. It needs what
// hostprog.OpenPacer needs. If it fails, it may be called again.
func Open(c Config) (*Host, error) {
	h := &Host{config: c, start: time.Now(), waiting: make(chan qcn.Message, maxWaiting), ended: make(chan struct{})}
	var err error
	switch {
	case c.Secret == nil:
		err = errors.New("Secret is nil, so anybody could slow connections; set it")
	case !c.Address.Is4():
		err = fmt.Errorf("Address %v is not IPv4", c.Address)
	case c.Reactions.Limit > hostprog.MaxPaceRate:
		err = fmt.Errorf("Reactions.Limit is %g bytes/s, must be at most %d", c.Reactions.Limit, uint32(hostprog.MaxPaceRate))
	default:
		h.reactions, err = qcn.NewReactions(c.Reactions)
	}
	if err != nil {
		return nil, fmt.Errorf("pacing: %w", err)
	}
	h.SetSecret(c.Secret)
	// First, as it fails where another Host is, whose connections OpenPacer would free.
	if h.socket, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.Address, encap.FeedbackPort))); err != nil {
		return nil, kernel.Explain(fmt.Errorf("pacing: %w", err))
	}
	if h.pacer, err = hostprog.OpenPacer(); err != nil {
		return nil, errors.Join(fmt.Errorf("pacing: %w", err), h.socket.Close())
	}
	go h.receive()
	go h.run()
	return h, nil
}

// SetSecret says how messages are checked from now on: secret returns the secret of a key by
// its number, nil if there is none with it. It is called for each message, by a goroutine of
// the Host. If it is nil itself, no message is believed.
func (h *Host) SetSecret(secret func(key uint8) []byte) {
	if secret == nil {
		secret = func(uint8) []byte { return nil }
	}
	h.secret.Store(&secret)
}

// receive takes messages until the socket is closed. Those that are not signed cost no more than
// their check: no round.
func (h *Host) receive() {
	defer close(h.waiting)
	b := make([]byte, 2*encap.MaxFeedbackLen)
	for {
		n, _, err := h.socket.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		f, err := encap.ParseFeedback(b[:n], *h.secret.Load())
		switch {
		case err != nil:
			h.count(func(s *Stats) { s.Malformed++ })
			continue
		case f.Source().Addr() != h.config.Address:
			h.count(func(s *Stats) { s.Foreign++ })
			continue
		}
		select {
		case h.waiting <- qcn.Message{Flow: qcn.Flow{Local: f.Source(), Remote: f.Dest()}, Seq: f.Seq(), Level: int(f.Level)}:
		default:
			h.count(func(s *Stats) { s.Dropped++ })
		}
	}
}

func (h *Host) count(do func(*Stats)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do(&h.stats)
}

// run makes rounds while there are messages, or flows are limited.
func (h *Host) run() {
	defer close(h.ended)
	var next time.Time // no round before it
	for {
		var due <-chan time.Time
		if !h.reactions.Idle() {
			due = time.After(time.Until(next))
		}
		select {
		case m, ok := <-h.waiting:
			if !ok {
				return
			}
			h.reactions.Hear(m)
			time.Sleep(time.Until(next))
		case <-due:
		}
		h.drain()
		began := time.Now()
		err := h.round(began.Sub(h.start))
		h.count(func(s *Stats) {
			s.Rounds++
			s.Stats, s.Limited, s.Error = h.reactions.Stats(), h.reactions.Len(), ""
			if err != nil {
				s.Error = err.Error()
			}
		})
		took := time.Since(began)
		next = began.Add(max(leastRound, share*took))
	}
}

// drain takes the messages that have come.
func (h *Host) drain() {
	for {
		select {
		case m, ok := <-h.waiting:
			if !ok {
				return
			}
			h.reactions.Hear(m)
		default:
			return
		}
	}
}

// round looks at the connections, and gives them their rates.
func (h *Host) round(now time.Duration) (err error) {
	believed := h.reactions.Stats().Believed
	h.reactions.Flows(func(f qcn.Flow) { err = errors.Join(err, h.pacer.Watch(f)) })
	err = errors.Join(err, h.pacer.Walk())
	h.reactions.Look(now, h.pacer.Look)
	h.reactions.Flows(func(f qcn.Flow) {
		if rate, limited := h.reactions.Rate(f); limited {
			err = errors.Join(err, h.pacer.Limit(f, rate))
		}
	})
	if h.reactions.Stats().Believed != believed { // rates that rise have time until the next round
		err = errors.Join(err, h.pacer.Walk())
	}
	return errors.Join(err, h.pacer.Keep(h.reactions.Known))
}

// Stats returns the counters.
func (h *Host) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stats
}

// Close ends it. All connections have their own rates again; those that were limited go on
// being paced by TCP's timer (hostprog.Pacer).
func (h *Host) Close() error {
	err := h.socket.Close()
	<-h.ended
	return errors.Join(err, h.pacer.Close())
}
