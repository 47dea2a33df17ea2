package link

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
)

// relay passes packets between the queues of two TUNs, number i of one to number
// i of the other, and notes on which queue each flow was read and whether its
// sequence numbers went on.
type relay struct {
	mu     sync.Mutex
	queues map[[6]byte]map[int]bool // source and destination port, direction
	whole  int
}

func (r *relay) run(wg *sync.WaitGroup, direction, queue int, from, to superDevice) {
	wg.Go(func() {
		bufs, sizes := buffers(8, SuperHeadroom+MaxSuperLen)
		out := make([][]byte, 8)
		for {
			n, err := from.ReadSuper(bufs, sizes, SuperHeadroom)
			if err != nil {
				return
			}
			for i := range n {
				out[i] = bufs[i][:SuperHeadroom+sizes[i]]
				r.note(direction, queue, out[i])
			}
			if _, err := to.WriteSuper(out[:n], SuperHeadroom); err != nil {
				return
			}
		}
	})
}

func (r *relay) note(direction, queue int, b []byte) {
	h, p := ParseVnetHeader((*[VnetHeaderLen]byte)(b[SuperHeadroom-VnetHeaderLen:])), b[SuperHeadroom:]
	ip := 20
	if p[0]>>4 == 6 {
		ip = 40
	}
	if len(p) < ip+20 || p[9] != 6 && p[6] != 6 {
		return
	}
	key := [6]byte{4: byte(direction)}
	copy(key[:4], p[ip:])
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queues[key] == nil {
		r.queues[key] = make(map[int]bool)
	}
	r.queues[key][queue] = true
	if h.GSO() {
		r.whole++
	}
}

// TestTUN_kernelTCPOnManyQueues sends files by the kernels' TCP from one
// namespace to another and back, over two TUNs with four queues each. Every flow
// stays on one queue.
func TestTUN_kernelTCPOnManyQueues(t *testing.T) {
	for _, addrs := range [][2]string{{"10.8.1.1/24", "10.8.2.1/24"}, {"fd08:1::1/64", "fd08:2::1/64"}} {
		for _, offload := range []bool{true, false} {
			t.Run(fmt.Sprint(addrs[0], " offload ", offload), func(t *testing.T) {
				kernelTCP(t, netip.MustParsePrefix(addrs[0]), netip.MustParsePrefix(addrs[1]), offload)
			})
		}
	}
}

func kernelTCP(t *testing.T, near, far netip.Prefix, offload bool) {
	const queues, conns, size = 4, 16, 300_000
	c := newCable(t)
	config := TUNConfig{Offload: offload, Queues: queues, NoForwardCheck: true}
	open := func(own, other netip.Prefix) (tun *TUN) {
		c := config
		c.Address, c.Routes = own, []netip.Prefix{other.Masked()}
		tun, err := OpenTUN(c)
		if err != nil {
			t.Error(err)
		}
		return tun
	}
	a := open(near, far)
	var b *TUN
	var l net.Listener
	c.do(func() {
		b = open(far, near)
		var err error
		if l, err = net.Listen("tcp", netip.AddrPortFrom(far.Addr(), 7000).String()); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	r := &relay{queues: make(map[[6]byte]map[int]bool)}
	var relays, transfers sync.WaitGroup
	for i := range queues {
		r.run(&relays, 0, i, a.Queue(i), b.Queue(i))
		r.run(&relays, 1, i, b.Queue(i), a.Queue(i))
	}
	transfers.Go(func() { echo(l, conns) })
	for i := range conns {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		transfers.Go(func() { both(t, conn, piece(i*1001, 60000), size) })
	}
	transfers.Wait()
	l.Close()
	a.Close()
	b.Close()
	relays.Wait()
	r.check(t, conns, offload)
}

func (r *relay) check(t *testing.T, conns int, offload bool) {
	used := make(map[int]bool)
	for key, on := range r.queues {
		if len(on) != 1 {
			t.Errorf("flow from port %d to %d was read on queues %v", binary.BigEndian.Uint16(key[:]), binary.BigEndian.Uint16(key[2:]), on)
		}
		for q := range on {
			used[q] = true
		}
	}
	if len(r.queues) != 2*conns || len(used) < 2 {
		t.Errorf("%d flows on %d queues, want %d on several", len(r.queues), len(used), 2*conns)
	}
	if (r.whole > 0) != offload {
		t.Errorf("%d super-segments", r.whole)
	}
}

// echo sends back what comes by n connections.
func echo(l net.Listener, n int) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for range n {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		wg.Go(func() {
			defer conn.Close()
			io.Copy(struct{ io.Writer }{conn}, struct{ io.Reader }{conn})
		})
	}
}

// both sends size bytes made of b and wants them back.
func both(t *testing.T, conn net.Conn, b []byte, size int) {
	defer conn.Close()
	go func() {
		for sent := 0; sent < size; sent += len(b) {
			conn.Write(b)
		}
		conn.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	if err != nil || len(got) != size {
		t.Errorf("%d bytes came back: %v", len(got), err)
	}
	for ; len(got) >= len(b); got = got[len(b):] {
		if !bytes.Equal(got[:len(b)], b) {
			t.Error("wrong bytes came back")
			return
		}
	}
}
