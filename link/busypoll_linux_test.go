package link

import (
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPacketBusyPoll_takesWhatComes: a Read that finds nothing looks again, and does not
// return to the runtime, which would put it to sleep.
func TestPacketBusyPoll_takesWhatComes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	c := newCable(t)
	near, far := c.openNear(t, PacketConfig{Gateway: far4, Filter: nothing}), c.openFar(t, PacketConfig{BusyPoll: MaxBusyPoll})
	if far.rd.busy != MaxBusyPoll || near.rd.busy != 0 {
		t.Errorf("polls for %v and %v, want %v and 0", far.rd.busy, near.rd.busy, MaxBusyPoll)
	}
	far.rd.busy = time.Hour
	in, sizes := buffers(1, SuperHeadroom+2000)
	took := make(chan bool)
	f := &traffic{src: near4, dst: far4, proto: 17, port: 5001, mss: 1448}
	far.rd.bufs, far.rd.sizes, far.rd.offset, far.rd.super = in, sizes, SuperHeadroom, true
	for takeOne(far) == nil {
	}
	go func() {
		var done bool
		far.raw.Control(func(fd uintptr) { done = far.readBatch(fd) })
		took <- done
	}()
	for range 100 {
		runtime.Gosched()
	}
	select {
	case <-took:
		t.Fatal("returned without a packet")
	default:
	}
	near.WriteSuper([][]byte{f.packet(make([]byte, 2000), SuperHeadroom, 100)}, SuperHeadroom)
	if done := <-took; !done || far.rd.n != 1 {
		t.Errorf("took %d packets, done: %v", far.rd.n, done)
	}
}

// takeOne takes what waits, which neighbours say to each other; an error means nothing does.
func takeOne(p *Packet) (err error) {
	p.raw.Control(func(fd uintptr) { _, _, err = unix.Recvfrom(int(fd), make([]byte, 1<<16), unix.MSG_DONTWAIT) })
	return err
}

// TestPacketBusyPoll_endsWithClose does not wait for the time to be up.
func TestPacketBusyPoll_endsWithClose(t *testing.T) {
	c := newCable(t)
	p := c.openNear(t, PacketConfig{Gateway: far4, Filter: nothing, BusyPoll: time.Millisecond})
	p.rd.busy = time.Hour
	ended := make(chan error)
	go func() {
		bufs, sizes := buffers(1, 2000)
		_, err := p.Read(bufs, sizes, 0)
		ended <- err
	}()
	for range 100 {
		runtime.Gosched()
	}
	p.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read: %v", err)
	}
}

// TestPacketBusyPoll_notByOneProcessor: a reader that spins there keeps the runtime from looking for
// what other sockets have.
func TestPacketBusyPoll_notByOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	c := newCable(t)
	if p := c.openFar(t, PacketConfig{BusyPoll: MaxBusyPoll}); p.rd.busy != 0 {
		t.Errorf("polls for %v with one processor", p.rd.busy)
	}
}
