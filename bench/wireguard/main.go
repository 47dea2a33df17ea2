// Command wireguard forwards packets between a TUN interface and UDP with the
// tun and conn packages of wireguard-go, batches and offloads included, and
// without its cryptography: the most that a tunnel built on them can move. It
// is a module of its own, so that weft does not depend on wireguard-go.
//
// It is started by weft bench throughput, which configures the interface and
// asks, by a line on standard input, for counters on standard output; it ends
// when standard input does.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/tun"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "wireguard:", err)
		os.Exit(1)
	}
}

func run() error {
	name := flag.String("tun", "wg0", "name of the interface")
	mtu := flag.Int("mtu", 1420, "its MTU, bytes: wg-quick's")
	port := flag.Uint("port", 51820, "UDP port")
	peer := flag.String("peer", "", "address and port of the other end")
	flag.Parse()
	device, err := tun.CreateTUN(*name, *mtu)
	if err != nil {
		return fmt.Errorf("interface %s: %w", *name, err)
	}
	defer device.Close()
	bind := conn.NewDefaultBind()
	receivers, _, err := bind.Open(uint16(*port))
	if err != nil {
		return fmt.Errorf("UDP port %d: %w", *port, err)
	}
	defer bind.Close()
	remote, err := bind.ParseEndpoint(*peer)
	if err != nil {
		return fmt.Errorf("--peer=%s: %w", *peer, err)
	}
	failed := make(chan error, 1+len(receivers))
	go func() { failed <- send(device, bind, remote) }()
	for _, receive := range receivers {
		go func() { failed <- deliver(device, receive, bind.BatchSize()) }()
	}
	go func() { failed <- answer() }()
	return <-failed
}

// headroom is more than what Device.Write puts before a packet. wireguard-go
// has its own header there.
const headroom = 32

// maxPacket holds the datagrams that are coalesced into one.
const maxPacket = 65535

func buffers(n int) [][]byte {
	b := make([][]byte, n)
	for i := range b {
		b[i] = make([]byte, maxPacket)
	}
	return b
}

// send takes what the kernel sends into the interface to the peer.
func send(device tun.Device, bind conn.Bind, to conn.Endpoint) error {
	n := max(device.BatchSize(), bind.BatchSize())
	bufs, sizes, out := buffers(n), make([]int, n), make([][]byte, 0, n)
	for {
		n, err := device.Read(bufs, sizes, headroom)
		if err != nil && !errors.Is(err, tun.ErrTooManySegments) {
			return err
		}
		out = out[:0]
		for i := range n {
			out = append(out, bufs[i][headroom:headroom+sizes[i]])
		}
		if len(out) == 0 {
			continue
		}
		if err := bind.Send(out, to); err != nil && !errors.As(err, new(conn.ErrUDPGSODisabled)) && !errors.Is(err, unix.ENOBUFS) {
			return err
		}
	}
}

// deliver gives what comes from the peer to the kernel.
func deliver(device tun.Device, receive conn.ReceiveFunc, batch int) error {
	bufs, sizes, from := buffers(batch), make([]int, batch), make([]conn.Endpoint, batch)
	in, out := make([][]byte, batch), make([][]byte, 0, batch)
	for i := range in {
		in[i] = bufs[i][headroom:]
	}
	for {
		n, err := receive(in, sizes, from)
		if err != nil {
			return err
		}
		out = out[:0]
		for i := range n {
			if sizes[i] > 0 {
				out = append(out, bufs[i][:headroom+sizes[i]])
			}
		}
		// A packet that the kernel refuses is lost, as on any link.
		if _, err := device.Write(out, headroom); errors.Is(err, os.ErrClosed) {
			return err
		}
	}
}

// counters are those that a process of weft bench throughput reports.
type counters struct {
	Mallocs  uint64 `json:"mallocs"`
	CPUNanos int64  `json:"cpu_ns"`
}

// answer replies with the process's counters to every line of standard input,
// until it ends.
func answer() error {
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(counters{}); err != nil { // ready
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			return err
		}
		cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
		if err := out.Encode(counters{m.Mallocs, cpu.Nanoseconds()}); err != nil {
			return err
		}
	}
	return nil
}
