package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/tun"
)

// forward moves packets between an interface and a peer as they are, until something
// fails.
func forward(device tun.Device, port uint16, peer string, failed chan<- error) error {
	bind := conn.NewDefaultBind()
	receivers, _, err := bind.Open(port)
	if err != nil {
		return fmt.Errorf("UDP port %d: %w", port, err)
	}
	remote, err := bind.ParseEndpoint(peer)
	if err != nil {
		return fmt.Errorf("--peer=%s: %w", peer, err)
	}
	go func() { failed <- send(device, bind, remote) }()
	for _, receive := range receivers {
		go func() { failed <- deliver(device, receive, bind.BatchSize()) }()
	}
	return nil
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
