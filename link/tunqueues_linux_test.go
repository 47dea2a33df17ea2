package link

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

const (
	queueFlows  = 200
	queueRounds = 10
)

// queueFlow is a UDP socket of the kernel's, whose packets to behind4 go into the
// TUN, numbered.
type queueFlow struct {
	conn net.Conn
	sent uint32
}

func (f *queueFlow) send(t *testing.T, packets int) {
	for range packets {
		if _, err := f.conn.Write(binary.BigEndian.AppendUint32(nil, f.sent)); err != nil {
			t.Fatal(err)
		}
		f.sent++
	}
}

// answer is a packet back to a flow's port.
func answer(port uint16) []byte {
	b := make([]byte, SuperHeadroom+20+8)
	p := b[SuperHeadroom:]
	copy(p, []byte{0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17})
	copy(p[12:], behind4.AsSlice())
	copy(p[16:], near4.AsSlice())
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(p[i])<<8 | uint32(p[i+1])
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(p[10:], ^uint16(sum+sum>>16))
	binary.BigEndian.PutUint16(p[20:], 9)
	binary.BigEndian.PutUint16(p[22:], port)
	binary.BigEndian.PutUint16(p[24:], 8)
	return b
}

// queueTally is what has arrived of each flow, by its port.
type queueTally struct {
	mu    sync.Mutex
	next  map[uint16]uint32
	late  int // packets that came behind a later one of their flow
	count int
}

// reached waits until so many packets have arrived, though not forever.
func (c *queueTally) reached(count int) bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		c.mu.Lock()
		ok := c.count >= count
		c.mu.Unlock()
		if ok {
			return true
		}
	}
	return false
}

func (c *queueTally) take(p []byte) {
	if len(p) != 32 || p[0]>>4 != 4 || p[9] != 17 {
		return // the kernel's own, of IPv6
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	port, n := binary.BigEndian.Uint16(p[20:]), binary.BigEndian.Uint32(p[28:])
	if n < c.next[port] {
		c.late++
	}
	c.next[port] = n + 1
	c.count++
}

// read takes what comes by a device until that is closed.
func (c *queueTally) read(dev interface {
	ReadSuper([][]byte, []int, int) (int, error)
}) {
	bufs, sizes := buffers(8, SuperHeadroom+2000)
	for {
		n, err := dev.ReadSuper(bufs, sizes, SuperHeadroom)
		for i := range n {
			c.take(bufs[i][SuperHeadroom:][:sizes[i]])
		}
		if err != nil {
			return
		}
	}
}

// All flows arrive, and in order, whether one goroutine reads the TUN or each
// queue has its own, though packets of the flows are written meanwhile.
func TestTUN_readsAllQueues(t *testing.T) {
	for _, offload := range []bool{true, false} {
		for _, parallel := range []bool{false, true} {
			t.Run(fmt.Sprintf("offload %v, parallel %v", offload, parallel), func(t *testing.T) { testQueues(t, offload, parallel) })
		}
	}
}

func testQueues(t *testing.T, offload, parallel bool) {
	newCable(t)
	tun := behind(t, TUNConfig{Offload: offload, Queues: 4})
	if tun.Queues() != 4 {
		t.Fatalf("%d queues", tun.Queues())
	}
	flows := make([]*queueFlow, queueFlows)
	for i := range flows {
		conn, err := net.Dial("udp4", netip.AddrPortFrom(behind4, 9).String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		flows[i] = &queueFlow{conn: conn}
	}
	var readers sync.WaitGroup
	defer readers.Wait()
	defer tun.Close()
	c := &queueTally{next: make(map[uint16]uint32)}
	for round := range queueRounds {
		// At first half of the packets wait in the queues when the answers are written:
		// these must not move their flows to another queue.
		for _, f := range flows {
			f.send(t, 2)
		}
		for _, f := range flows {
			b := answer(uint16(f.conn.LocalAddr().(*net.UDPAddr).Port))
			if n, err := tun.WriteSuper([][]byte{b}, SuperHeadroom); n != 1 || err != nil {
				t.Fatalf("WriteSuper: %d, %v", n, err)
			}
		}
		for _, f := range flows {
			f.send(t, 2)
		}
		switch {
		case round > 0:
		case parallel:
			for i := range tun.Queues() {
				readers.Go(func() { c.read(tun.Queue(i)) })
			}
		default:
			readers.Go(func() { c.read(tun) })
		}
		want := 4 * queueFlows * (round + 1)
		all := c.reached(want)
		c.mu.Lock()
		seen, count, late := len(c.next), c.count, c.late
		c.mu.Unlock()
		if !all || seen != queueFlows || count != want || late > 0 {
			t.Fatalf("round %d: %d of %d flows have arrived, %d of %d packets, %d of them behind a later one; %d dropped",
				round, seen, queueFlows, count, want, late, tun.Drops())
		}
	}
}
