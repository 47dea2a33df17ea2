package daemon

import (
	"encoding/binary"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/kernel/disturb"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
)

// Datagrams of the kernel's that are listed take all paths, super-packets of them as a whole,
// and come in order. All else about them is as it was.
func TestRun_datagramsInOrder(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	const config = "mode: offload\npolicy: presto\nresequence: true\nreceivers_resequence: true\ndatagrams: [4433]\n"
	a := n.start("h0.0.2", config, dataplanes[1].env)
	b := n.start("h3.1.3", config, dataplanes[1].env)
	var from, to *net.UDPConn
	n.do("h3.1.3", func() (err error) {
		to, err = net.ListenUDP("udp4", &net.UDPAddr{Port: 4433})
		return err
	})
	defer to.Close()
	n.do("h0.0.2", func() (err error) {
		from, err = net.DialUDP("udp4", nil, &net.UDPAddr{IP: n.node("h3.1.3").Addr.AsSlice(), Port: 4433})
		return err
	})
	defer from.Close()
	// One of the four paths is longer.
	core := n.node("c1.1").ID
	kerneltest.Disturb(t, func(f func() error) error { return n.lab.Do(core, f) }, "p3", disturb.Disturbance{Skew: 2 * time.Millisecond})
	raw, err := from.SyscallConn()
	if err == nil {
		err2 := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, datagramSize) })
		if err == nil {
			err = err2
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	counter := func(c *child, key string) int {
		v, _ := strconv.Atoi(c.status()[key])
		return v
	}
	number := uint32(0)
	kerneltest.Within(t, kerneltest.Patience, "a run in which nothing is lost or late, and all of it is put in order", func() bool {
		sprayed, filled := counter(a, "offload.datagrams"), counter(b, "dataplane.datagrams.filled")
		gaveUp := counter(b, "dataplane.datagrams.timed_out") + counter(b, "dataplane.datagrams.loss") + counter(b, "order.passed_dead")
		const rounds = 4 // a busy machine is late once in more
		inOrder := true
		for range rounds {
			was := number
			for range 8 {
				super := make([]byte, datagramSize*10)
				for at := 0; at < len(super); at += datagramSize {
					binary.BigEndian.PutUint32(super[at:], number)
					number++
				}
				if _, err := from.Write(super); err != nil {
					t.Fatal(err)
				}
			}
			to.SetReadDeadline(time.Now().Add(time.Second))
			buf := make([]byte, 2000)
			for ; was < number; was++ {
				k, _, err := to.ReadFromUDP(buf)
				if err != nil {
					return false
				}
				if k != datagramSize {
					t.Fatalf("a datagram of %d bytes", k)
				}
				inOrder = inOrder && binary.BigEndian.Uint32(buf) == was
			}
		}
		if counter(b, "dataplane.datagrams.timed_out")+counter(b, "dataplane.datagrams.loss")+counter(b, "order.passed_dead") != gaveUp {
			return false
		}
		return inOrder && counter(a, "offload.datagrams")-sprayed == rounds*80 && counter(b, "dataplane.datagrams.filled") > filled
	})
	if s := b.status(); s["order.datagrams"] == "0" || s["dataplane.handover.missed"] != "0" {
		t.Errorf("status %v", s)
	}
	a.end(syscall.SIGTERM)
	b.end(syscall.SIGTERM)
}

const datagramSize = 1000
