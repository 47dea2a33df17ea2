package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"weft/stack"
	"weft/topology"
	"weft/uplink"
)

// vitals is what only a process itself knows of itself.
type vitals struct {
	Goroutines int
	Heap       uint64 // bytes in use
	// MemoryLimit is the garbage collector's, in bytes.
	MemoryLimit int64
	Load        *soakCounts
}

// vitalsSocket is where a process of the tests answers with its vitals, in the
// network namespace that it is in.
func vitalsSocket(process int) string { return fmt.Sprintf("@weft-vitals-%d", process) }

// serveVitals answers for as long as the process lives.
func serveVitals(load *soakLoad) error {
	l, err := net.Listen("unix", vitalsSocket(os.Getpid()))
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			v := vitals{Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc, MemoryLimit: debug.SetMemoryLimit(-1)}
			if load != nil {
				counts := load.counted()
				v.Load = &counts
			}
			json.NewEncoder(c).Encode(v)
			c.Close()
		}
	}()
	return nil
}

// embedded is the test program as a Go service with a Host of its own: an echo
// server, and a client of others. spec is its address, how many connections it holds,
// and to whom.
func embedded(spec string) error {
	words := strings.Fields(spec)
	var held int
	if len(words) < 3 {
		return fmt.Errorf("%q: want an address, a number and servers", spec)
	}
	if _, err := fmt.Sscan(words[1], &held); err != nil {
		return err
	}
	fabric, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		return err
	}
	address, err := netip.ParseAddr(words[0])
	if err != nil {
		return err
	}
	host, device, err := uplink.NewHost(stack.Config{Address: address, Topology: fabric, Policy: "presto", Liveness: &stack.Liveness{}}, uplink.Options{})
	if err != nil {
		return err
	}
	defer host.Close()
	l, err := host.Listen("tcp", ":7")
	if err != nil {
		return err
	}
	go echo(l)
	// A server's host may be without its uplink for a moment, and its switch says so.
	load := &soakLoad{held: held, away: func() bool { return true }, to: words[2:], dial: func(ctx context.Context, to string) (net.Conn, error) { return host.DialContext(ctx, "tcp", to) }}
	if err := serveVitals(load); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "mode embedded:", device.Offloads())
	load.run(context.Background(), 7, func() { fmt.Fprintln(os.Stderr, "all are open") })
	return nil
}
