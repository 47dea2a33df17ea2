package dataplane

import (
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weft/internal/dataplane/dataplanetest"
)

// deadlineDevice is one whose ReadSuper waits for packets, or for its deadline.
type deadlineDevice struct {
	*superMemory
	packets  chan []byte
	deadline atomic.Pointer[time.Time]
	hangs    atomic.Bool // ReadSuper does not return at its deadline
}

func newDeadlineDevice() *deadlineDevice {
	_, far := superPair(1500)
	return &deadlineDevice{superMemory: far, packets: make(chan []byte)}
}

func (d *deadlineDevice) SetReadDeadline(t time.Time) error {
	d.deadline.Store(&t)
	return nil
}

func (d *deadlineDevice) ReadSuper(bufs [][]byte, sizes []int, offset int) (int, error) {
	var late <-chan time.Time
	if at := d.deadline.Load(); at != nil && !d.hangs.Load() {
		late = time.After(time.Until(*at))
	}
	select {
	case b, open := <-d.packets:
		if !open {
			return 0, net.ErrClosed
		}
		clear(bufs[0][:offset])
		sizes[0] = copy(bufs[0][offset:], b)
		return 1, nil
	case <-late:
		return 0, os.ErrDeadlineExceeded
	}
}

func (d *deadlineDevice) Close() error {
	close(d.packets)
	return d.superMemory.Close()
}

// Beats of idle goroutines come at the same times, whenever these begin, and never later than
// promised.
func TestBeat_comesWithOthers(t *testing.T) {
	clock, dev := &dataplanetest.HandClock{}, newDeadlineDevice()
	for _, begin := range []time.Duration{0, 1, 30 * time.Millisecond, beatEvery - 1, beatEvery, 7*beatEvery + 1} {
		clock.Run(begin)
		shown := 0
		b := beat{show: func() { shown++ }, dev: dev, clock: clock}
		for i := range 3 {
			now := clock.Now()
			b.before()
			b.before() // packets have come
			if shown != i+1 || b.next%beatEvery != 0 || b.next <= now || b.next > now+beatEvery {
				t.Errorf("begun at %v: %d beats at %v, the next at %v", begin, shown, now, b.next)
			}
			clock.Run(b.next - now)
		}
	}
}

// Both movers beat though no packet comes, go on to move packets, and the one that
// hangs is silent.
func TestGateway_beats(t *testing.T) {
	programs, below := newDeadlineDevice(), newDeadlineDevice()
	var out, in atomic.Int64
	g, err := NewGateway(GatewayConfig{Address: addrA, Topology: fatTree, Programs: programs, Fabric: below, Policy: "drb", Seed: 1,
		BeatOut: func() { out.Add(1) }, BeatIn: func() { in.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	eventually(t, "both beat", func() bool { return out.Load() > 3 && in.Load() > 3 })
	programs.packets <- fixed(dataPacket(1, 100))
	below.packets <- fixed(dataPacket(2, 100))
	eventually(t, "both move packets", func() bool {
		s := g.Stats()
		return s.Egress.Encapsulated == 1 && s.Ingress.Packets == 1
	})
	below.hangs.Store(true)
	time.Sleep(4 * beatEvery) // what is under way ends
	was, others := in.Load(), out.Load()
	eventually(t, "the other goes on", func() bool { return out.Load() > others+5 })
	if n := in.Load(); n != was {
		t.Errorf("the reader that hangs has beaten %d times", n-was)
	}
	if g.Err() != nil {
		t.Error(g.Err())
	}
}

func TestNewGateway_beatNeedsADeadline(t *testing.T) {
	_, programs := superPair(1500)
	_, err := NewGateway(GatewayConfig{Address: addrA, Topology: fatTree, Programs: programs, BeatOut: func() {}})
	if err == nil || !strings.Contains(err.Error(), "GatewayConfig.BeatOut") {
		t.Errorf("%v", err)
	}
}

// Of several goroutines all must show that they live.
func TestTogether_oneThatHangsIsNoticed(t *testing.T) {
	shown := 0
	all := together(3, func() { shown++ })
	for range 5 {
		all[0]()
		all[2]()
	}
	if shown != 0 {
		t.Fatalf("%d beats without the second goroutine", shown)
	}
	all[1]()
	all[1]()
	if shown != 1 {
		t.Errorf("%d beats, want 1", shown)
	}
	if together(1, nil)[0] != nil || together(3, nil)[1] != nil {
		t.Error("nobody asks for beats, but they are made")
	}
}
