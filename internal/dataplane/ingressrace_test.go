package dataplane

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"weft/flowcell"
	"weft/internal/clock"
	"weft/link"
	"weft/resequencer"
)

// storm is a SuperDevice to read super-segments with holes from, as fast as
// somebody reads, and to write them back to. Each has a number all through its
// payload, by which what is written is recognised.
type storm struct {
	idle    bool // writes no payload and looks at none
	batches int  // left to be read; the reader's alone
	next    uint32
	packet  []byte
	copied  [link.MaxSuperLen]byte
	random  *rand.Rand

	// Written under the ingress's lock.
	times  []int // that a number was delivered
	broken int   // packets written whose bytes are nobody's
}

const (
	stormPayload = 24 << 10 // more than small: the buffer changes hands
	stormMSS     = 1024
	stormFlows   = 256
)

func newStorm(batches int) *storm {
	b := dataPacket(1, stormPayload)
	return &storm{batches: batches, packet: b, random: rand.New(rand.NewPCG(1, 2)), times: make([]int, batches*superBatch)}
}

func (s *storm) MTU() int      { return 1500 }
func (s *storm) MaxSuper() int { return link.MaxSuperLen }
func (s *storm) Close() error  { return nil }

// ReadSuper fills all buffers. Every other segment of a flow comes behind a hole
// that nobody fills, so the timer is what releases it.
func (s *storm) ReadSuper(bufs [][]byte, sizes []int, offset int) (int, error) {
	if s.batches == 0 {
		return 0, net.ErrClosed
	}
	s.batches--
	if !s.idle { // the timer's time is up at any point of the reader's round
		for began, wait := time.Now(), time.Duration(s.random.IntN(60))*time.Microsecond; time.Since(began) < wait; {
		}
	}
	h := link.VnetHeader{Flags: link.VnetDataValid, GSOType: link.VnetGSOTCPv4, GSOSize: stormMSS, HdrLen: 40}
	for i, b := range bufs {
		n := s.next
		s.next++
		round := n / stormFlows
		binary.BigEndian.PutUint16(s.packet[20:], uint16(n%stormFlows+1))
		binary.BigEndian.PutUint32(s.packet[24:], (round+round/2)*stormPayload)
		h.Put((*[link.VnetHeaderLen]byte)(b[offset-link.VnetHeaderLen:]))
		copy(b[offset:], s.packet[:40])
		sizes[i] = len(s.packet)
		if s.idle {
			continue
		}
		binary.BigEndian.PutUint32(b[offset+40:], n)
		binary.BigEndian.PutUint32(b[offset+len(s.packet)-4:], n)
	}
	return len(bufs), nil
}

func (s *storm) WriteSuper(bufs [][]byte, offset int) (int, error) { panic("takes super-segments") }

func (s *storm) WriteParts(parts [][]byte) error {
	if s.idle {
		return nil
	}
	for i, b := range parts {
		copy(s.copied[:], b) // takes the time that a device takes
		if i == 0 {
			b = b[min(len(b), link.VnetHeaderLen+40):]
		}
		n := uint32(len(s.times))
		if len(b) == stormPayload {
			n = binary.BigEndian.Uint32(b)
		}
		if int(n) >= len(s.times) || binary.BigEndian.Uint32(b[stormPayload-4:]) != n {
			s.broken++
			continue
		}
		s.times[n]++
	}
	return nil
}

// The reader wants buffers while the timer gives back those of what it has
// delivered: each packet arrives once, and whole.
func TestIngress_readerAndTimerShareBuffers(t *testing.T) {
	batches := 50_000
	if testing.Short() {
		batches = 5_000
	}
	dev := newStorm(batches)
	c := resequencer.Config{Discipline: resequencer.Sequence, Hold: 20 * time.Microsecond, MinHold: 20 * time.Microsecond}
	in := newIngress[*frame](newSuperSource(dev), newToKernel(dev), c, clock.Real())
	in.accepts = func(*flowcell.Packet, []byte) bool { return true }
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() { // somebody asks for the status meanwhile
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Microsecond):
				in.Stats()
			}
		}
	}()
	in.run(func(err error) { t.Error(err) })
	in.Close()
	close(stop)
	<-watched

	stats, r, _ := in.Stats()
	if r.Timeouts == 0 {
		t.Errorf("the timer has released nothing: %+v", r)
	}
	missing, twice := 0, 0
	for _, n := range dev.times {
		switch {
		case n == 0:
			missing++
		case n > 1:
			twice++
		}
	}
	if missing+twice+dev.broken > 0 {
		t.Errorf("of %d packets %d did not arrive, %d arrived twice, and %d others are broken: %+v", len(dev.times), missing, twice, dev.broken, stats)
	}
}

// lockChecker is a sink that counts the calls without the lock.
type lockChecker struct {
	*toKernel
	mu    *sync.Mutex
	loose int
}

func (c *lockChecker) check() {
	if c.mu.TryLock() {
		c.mu.Unlock()
		c.loose++
	}
}

func (c *lockChecker) Buffer(slot, size int) []byte {
	c.check()
	return c.toKernel.Buffer(slot, size)
}

func (c *lockChecker) Packet(pkt *flowcell.Packet, a *Arrived) *frame {
	c.check()
	return c.toKernel.Packet(pkt, a)
}

func (c *lockChecker) Deliver(ready []*frame) int {
	c.check()
	return c.toKernel.Deliver(ready)
}

// Whatever the reader and the timer do with a sink, they have the lock.
func TestIngress_locksItsSink(t *testing.T) {
	dev := newStorm(100)
	c := &lockChecker{toKernel: newToKernel(dev)}
	in := newIngress[*frame](newSuperSource(dev), c, resequencer.Config{Hold: time.Millisecond}, clock.Real())
	in.accepts = func(*flowcell.Packet, []byte) bool { return true }
	c.mu = &in.mu
	in.run(func(err error) { t.Error(err) })
	in.Close()
	if c.loose > 0 {
		t.Errorf("%d calls without the lock", c.loose)
	}
}

// What a segment with its payload costs from the device to the kernel, with and
// without holes that the timer ends.
func BenchmarkIngress(b *testing.B) {
	for name, d := range map[string]resequencer.Discipline{"holes": resequencer.Sequence, "off": resequencer.Off} {
		b.Run(name, func(b *testing.B) {
			dev := newStorm(b.N/superBatch + 1)
			dev.idle = true
			c := resequencer.Config{Discipline: d, Hold: 20 * time.Microsecond, MinHold: 20 * time.Microsecond}
			in := newIngress[*frame](newSuperSource(dev), newToKernel(dev), c, clock.Real())
			in.accepts = func(*flowcell.Packet, []byte) bool { return true }
			b.SetBytes(stormPayload)
			b.ReportAllocs()
			b.ResetTimer()
			in.run(func(err error) { b.Error(err) })
			in.Close()
		})
	}
}
