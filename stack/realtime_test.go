package stack

import (
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// However many timers of a Host are due, they leave the processors to others: one
// runs at a time. It is the Host's clock that is asked, as netstack has it.
func TestHost_timersRunOneByOne(t *testing.T) {
	w := newWire(t)
	clock := newHost(t, w, addrA).net.Clock()
	var running, most atomic.Int32
	var all sync.WaitGroup
	const n = 1000
	all.Add(n)
	for range n {
		clock.AfterFunc(time.Millisecond, func() {
			defer all.Done()
			now := running.Add(1)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			runtime.Gosched()
			running.Add(-1)
		})
	}
	all.Wait()
	if m := most.Load(); m != 1 {
		t.Errorf("%d timers ran at once", m)
	}
}

func TestPacedClock_timers(t *testing.T) {
	c := newPacedClock()
	ran := make(chan struct{}, 2)
	f := func() { ran <- struct{}{} }
	stopped := c.AfterFunc(time.Hour, f)
	if !stopped.Stop() || stopped.Stop() {
		t.Error("Stop takes a call back that is to come, and no other")
	}
	c.AfterFunc(time.Hour, f).Reset(0)
	<-ran
	var nested tcpip.Timer
	c.AfterFunc(0, func() { nested = c.AfterFunc(0, f) }) // a timer may set another
	<-ran
	if nested.Stop() {
		t.Error("a timer has run and is still to come")
	}
}

// Closing connections takes each the same time, however many there are:
//
//	go test ./stack -run - -bench HostClose -benchtime 1x
func BenchmarkHostClose_connections(b *testing.B) {
	for _, n := range []int{10_000, 50_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				w := newWire(b)
				h := newHost(b, w, addrA)
				dialed, accepted := connectMany(b, h, n)
				runtime.GC()
				b.StartTimer()
				for i := range dialed {
					dialed[i].Close()
					accepted[i].Close()
				}
				h.Shutdown(b.Context())
				b.ReportMetric(float64(h.Stats().TCP.Retransmits)/float64(n), "retransmits/pair")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*b.N), "ns/pair")
		})
	}
}

// connectMany returns n connections of a Host to itself, over several of its
// ports, as one has no more than 49,536 others to connect to it.
func connectMany(b *testing.B, h *Host, n int) (dialed, accepted []net.Conn) {
	b.Helper()
	const each = 10_000
	for port := 80; len(dialed) < n; port++ {
		l, err := h.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			b.Fatal(err)
		}
		for range min(each, n-len(dialed)) {
			c, err := h.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			dialed = append(dialed, c)
			if c, err = l.Accept(); err != nil {
				b.Fatal(err)
			}
			accepted = append(accepted, c)
		}
	}
	return dialed, accepted
}
