package hostprog

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/kernel/kerneltest"
	"weft/internal/qcn"
	"weft/internal/slowtest"
)

// A connection that is limited has that highest rate; others are not touched. The Pacer says
// what is in flight. Afterwards it has its own rate again, or that which its program had set.
func TestPacer_limitsAConnection(t *testing.T) {
	inNewNamespace(t, func() {
		p, err := OpenPacer()
		must(err)
		s, other, own := newStream(t), newStream(t), newStream(t)
		own.option(t, func(fd int) (int, error) {
			return 0, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 500_000)
		})
		const rate = 2_000_000
		must(p.Limit(s.key, rate), p.Limit(own.key, rate), p.Watch(other.key), p.Walk())
		if got := s.highest(t); got > rate || got < rate-2048 {
			t.Errorf("limited to %d, want %d", got, rate)
		}
		if got := own.highest(t); got != 500_000 {
			t.Errorf("the program wants 500000, and got %d", got)
		}
		if got := other.highest(t); got != 1<<32-1 {
			t.Errorf("a connection that is only watched is limited to %d", got)
		}
		go s.send()
		go other.send()
		time.Sleep(100 * time.Millisecond)
		must(p.Walk())
		limited, ok := p.Look(s.key)
		free, ok2 := p.Look(other.key)
		if !ok || !ok2 || limited.Sent == 0 || free.Sent == 0 || limited.Rate == 0 {
			t.Errorf("the limited connection %+v, the free one %+v", limited, free)
		}
		if flight := limited.Next - limited.Una; flight > 1<<24 {
			t.Errorf("%d bytes in flight", flight)
		}
		must(p.Limit(own.key, 100_000), p.Walk())
		if got := own.highest(t); got > 100_000 {
			t.Errorf("%d", got)
		}
		must(p.Keep(func(k qcn.Flow) bool { return k == other.key }))
		if s, o := s.highest(t), own.highest(t); s != 1<<32-1 || o != 500_000 {
			t.Errorf("%d and %d afterwards", s, o)
		}
		if _, ok := p.Look(s.key); ok {
			t.Error("a forgotten connection is known")
		}
		must(p.Limit(s.key, rate), p.Walk(), p.Close())
		if got := s.highest(t); got != 1<<32-1 {
			t.Errorf("%d after Close", got)
		}
	})
}

// A limited connection sends at its rate, far slower than a free one beside it.
func TestPacer_slowsAConnection(t *testing.T) {
	slowtest.System(t)
	inNewNamespace(t, func() {
		p, err := OpenPacer()
		must(err)
		defer p.Close()
		const rate = 2_000_000
		s, other := newStream(t), newStream(t)
		must(p.Limit(s.key, rate), p.Watch(other.key), p.Walk())
		go s.send()
		go other.send()
		kerneltest.OnTime(t, func() string {
			start := time.Now()
			must(p.Walk())
			before, _ := p.Look(s.key)
			freeBefore, _ := p.Look(other.key)
			time.Sleep(time.Second)
			must(p.Walk())
			after, ok := p.Look(s.key)
			freeAfter, ok2 := p.Look(other.key)
			sent, free := after.Sent-before.Sent, freeAfter.Sent-freeBefore.Sent
			got := float64(sent) / time.Since(start).Seconds()
			if !ok || !ok2 || got > 1.3*rate || sent == 0 || free < 10*sent {
				return fmt.Sprintf("%.0f bytes/s are sent, limit %d; %d bytes, by the free one %d", got, rate, sent, free)
			}
			return ""
		})
	})
}

// A rate that the program sets while its connection is limited is its own from then on: it is
// not exceeded, and it comes back, also if it is none.
func TestPacer_programSetsItsRate(t *testing.T) {
	inNewNamespace(t, func() {
		p, err := OpenPacer()
		must(err)
		set := func(s stream, rate int) {
			s.option(t, func(fd int) (int, error) {
				return 0, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, rate)
			})
		}
		s, freed := newStream(t), newStream(t)
		set(freed, 900_000)
		must(p.Limit(s.key, 2_000_000), p.Limit(freed.key, 500_000), p.Walk(), p.Walk())
		set(s, 300_000)
		set(freed, -1)
		must(p.Walk())
		if got := s.highest(t); got != 300_000 {
			t.Errorf("%d, and the program wants 300000 now", got)
		}
		if got := freed.highest(t); got > 500_000 {
			t.Errorf("%d, and the limit is 500000", got)
		}
		must(p.Limit(s.key, 200_000), p.Walk())
		if got := s.highest(t); got > 200_000 {
			t.Errorf("%d, and the limit is 200000", got)
		}
		set(s, 400_000) // and the next walk is the last
		must(p.Close())
		if s, freed := s.highest(t), freed.highest(t); s != 400_000 || freed != 1<<32-1 {
			t.Errorf("%d and %d afterwards", s, freed)
		}
	})
}

// The rate of a connection that has had little to send is what its window allows, not what it
// has delivered. When it sends in bulk, it is at least what it delivers.
func TestPacer_rateOfAnIdleConnection(t *testing.T) {
	inNewNamespace(t, func() {
		p, err := OpenPacer()
		must(err)
		defer p.Close()
		s := newStream(t)
		for range 20 {
			_, err := s.Write(make([]byte, 100))
			must(err)
			time.Sleep(5 * time.Millisecond)
		}
		must(p.Watch(s.key))
		// Nothing is sent meanwhile. An acknowledgement that the receiver has delayed may come.
		kerneltest.Within(t, kerneltest.Patience, "the connection is idle", func() bool { return s.info(t).Unacked == 0 })
		must(p.Walk())
		info := s.info(t)
		c, _ := p.Look(s.key)
		allowed := float64(info.Snd_cwnd) * float64(info.Snd_mss) * 1e6 / float64(info.Rtt+1)
		if c.Rate < allowed || c.Rate < 2*float64(info.Delivery_rate) {
			t.Errorf("%.0f bytes/s, the window allows %.0f; %d were delivered", c.Rate, allowed, info.Delivery_rate)
		}
		_, err = s.Write(make([]byte, 4<<20))
		must(err)
		kerneltest.Within(t, kerneltest.Patience, "all is acknowledged", func() bool { i := s.info(t); return i.Unacked == 0 && i.Notsent_bytes == 0 })
		must(p.Walk())
		if c, _ := p.Look(s.key); c.Rate < float64(s.info(t).Delivery_rate) || c.Rate == 0 {
			t.Errorf("%.0f bytes/s, %d were delivered", c.Rate, s.info(t).Delivery_rate)
		}
	})
}

// Connections that end are gone from the next Walk; no more than MaxPaced are taken.
func TestPacer_isBounded(t *testing.T) {
	inNewNamespace(t, func() {
		p, err := OpenPacer()
		must(err)
		defer p.Close()
		s := newStream(t)
		must(p.Watch(s.key), p.Walk())
		if _, ok := p.Look(s.key); !ok {
			t.Error("it is not seen")
		}
		must(s.SetLinger(0), s.Close(), p.Walk())
		if _, ok := p.Look(s.key); ok {
			t.Error("a connection that has ended is seen")
		}
		for port := range MaxPaced - 1 {
			must(p.Watch(qcn.Flow{Local: s.key.Local, Remote: netip.AddrPortFrom(s.key.Remote.Addr(), uint16(1+port))}))
		}
		if err := p.Watch(qcn.Flow{Local: s.key.Remote, Remote: s.key.Local}); err == nil {
			t.Error("one too many is taken")
		}
		must(p.Keep(func(qcn.Flow) bool { return false }), p.Watch(qcn.Flow{Local: s.key.Remote, Remote: s.key.Local}))
	})
}
