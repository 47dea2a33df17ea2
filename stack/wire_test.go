package stack

import (
	"net/netip"
	"sync"
	"testing"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
)

// wire is a fabric reduced to what a Host can tell of it: it takes the outer
// header off and hands every packet to whom it is addressed.
type wire struct {
	mu    sync.Mutex
	ends  map[netip.Addr]*link.Memory // the latest of each address
	all   []*link.Memory
	seen  []sighting
	drop  func(sighting) bool                                // nil: nothing is dropped
	delay func(s sighting, packet []byte, send func([]byte)) // nil: at once
	wg    sync.WaitGroup
}

// sighting is a packet on its way through the fabric.
type sighting struct {
	bounce netip.Addr // invalid if it was not encapsulated
	packet flowcell.Packet
}

func newWire(t testing.TB) *wire {
	w := &wire{ends: make(map[netip.Addr]*link.Memory)}
	t.Cleanup(w.stop)
	return w
}

func (w *wire) stop() {
	w.mu.Lock()
	for _, far := range w.all {
		far.Close()
	}
	w.mu.Unlock()
	w.wg.Wait()
}

// plug returns the device of a host; the wire ends with it.
func (w *wire) plug(addr netip.Addr) *link.Memory {
	near, far := link.NewPair(1500, 4096)
	w.mu.Lock()
	w.ends[addr] = far
	w.all = append(w.all, far)
	w.mu.Unlock()
	w.wg.Add(1)
	go func() {
		defer w.wg.Done()
		bufs, sizes := make([][]byte, 32), make([]int, 32)
		for i := range bufs {
			bufs[i] = make([]byte, 1500)
		}
		for {
			n, err := far.Read(bufs, sizes, 0)
			if err != nil {
				return
			}
			for i := range n {
				w.forward(bufs[i][:sizes[i]])
			}
		}
	}()
	return near
}

func (w *wire) forward(b []byte) {
	var s sighting
	var p flowcell.Packet
	if err := p.Parse(b); err == nil && (p.Flow.Proto == flowcell.ProtoIPIP || p.Flow.Proto == flowcell.ProtoIPv6) {
		s.bounce = p.Flow.Dst.IP()
		decapsulate := encap.Decapsulate
		if b[0]>>4 == 6 { // the labels
			decapsulate = encap.DecapsulateSRv6
		}
		if b, err = decapsulate(b); err != nil {
			panic(err)
		}
	}
	_ = s.packet.Parse(b)
	w.mu.Lock()
	w.seen = append(w.seen, s)
	to := w.ends[s.packet.Flow.Dst.IP()]
	drop, delay := w.drop, w.delay
	w.mu.Unlock()
	if to == nil || drop != nil && drop(s) {
		return
	}
	send := func(b []byte) { to.Write([][]byte{b}, 0) }
	if delay != nil {
		delay(s, append([]byte(nil), b...), send)
		return
	}
	send(b)
}

// sightings returns the packets that match.
func (w *wire) sightings(match func(sighting) bool) (found []sighting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seen {
		if match(s) {
			found = append(found, s)
		}
	}
	return found
}

// newHost starts a Host at addr; change may adjust its configuration.
func newHost(t testing.TB, w *wire, addr netip.Addr, change ...func(*Config)) *Host {
	t.Helper()
	c := Config{Address: addr, Topology: fatTree, Policy: "drb", Device: w.plug(addr), Simulation: Simulation{Seed: 1}}
	for _, f := range change {
		f(&c)
	}
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}
