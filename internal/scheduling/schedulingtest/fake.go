// Package schedulingtest is a scheduler for tests: it leads, remembers what is reported, and
// places what the test says.
package schedulingtest

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"weft/hedera/wire"
	"weft/topology"
	"weft/topoupdate"
)

// Fake is a scheduler. Its methods are safe for concurrent use.
type Fake struct {
	Addr netip.AddrPort

	conn  *net.UDPConn
	start time.Time
	ended chan struct{}

	mu       sync.Mutex
	desk     *wire.Desk
	reported map[netip.Addr][]wire.Flow
}

// Start starts one at a local address of the calling thread's network namespace, until the test
// ends.
func Start(t testing.TB, at netip.AddrPort, top *topology.Topology, keys topoupdate.Keys) *Fake {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	f := &Fake{Addr: conn.LocalAddr().(*net.UDPAddr).AddrPort(), conn: conn, start: time.Now(), ended: make(chan struct{}), reported: make(map[netip.Addr][]wire.Flow)}
	f.desk, err = wire.NewDesk(wire.DeskConfig{Fabric: top.Whole().Fingerprint(), Keys: keys, Random: rand.Uint64,
		Known: func(a netip.Addr) bool { _, ok := top.ByAddr(a); return ok }})
	if err != nil {
		t.Fatal(err)
	}
	f.desk.Lead(true, f.Addr, 1)
	go f.serve()
	t.Cleanup(func() { conn.Close(); <-f.ended })
	return f
}

func (f *Fake) serve() {
	defer close(f.ended)
	buf := make([]byte, 1<<16)
	for {
		n, from, err := f.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		f.mu.Lock()
		node, flows, err := f.desk.Receive(buf[:n], from, time.Since(f.start), f.send)
		if err == nil && len(flows) > 0 {
			f.reported[node] = append([]wire.Flow(nil), flows...)
		}
		f.mu.Unlock()
	}
}

func (f *Fake) send(to netip.AddrPort, b []byte) { f.conn.WriteToUDPAddrPort(b, to) }

// Reported returns the flows of a node's latest report that had any.
func (f *Fake) Reported(node netip.Addr) []wire.Flow {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reported[node]
}

// Place tells a node of placements; false if the node has not been heard.
func (f *Fake) Place(node netip.Addr, list ...wire.Placement) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.desk.Place(node, list, time.Since(f.start), f.send)
}
