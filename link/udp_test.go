package link

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

var (
	loopback4 = netip.MustParseAddrPort("127.0.0.1:0")
	loopback6 = netip.MustParseAddrPort("[::1]:0")
)

// openUDP opens an underlay on the loopback interface. Reading from it ends
// after a while, so that a lost datagram fails a test rather than hangs it.
func openUDP(t testing.TB, c UDPConfig) *UDP {
	t.Helper()
	u, err := OpenUDP(c)
	if err != nil {
		if c.Listen == loopback6 {
			t.Skipf("no IPv6 here: %v", err)
		}
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(30*time.Second, func() { u.Close() })
	t.Cleanup(func() { watchdog.Stop(); u.Close() })
	return u
}

// mailbox receives datagram by datagram.
type mailbox struct {
	u           *UDP
	bufs        [][]byte
	sizes, segs []int
	tos         []byte
	from        []netip.AddrPort
	trains      int // received with more than one datagram
	waiting     []datagram
}

type datagram struct {
	bytes []byte
	tos   byte
	from  netip.AddrPort
}

func newMailbox(u *UDP, n int) *mailbox {
	m := &mailbox{u: u, sizes: make([]int, n), segs: make([]int, n), tos: make([]byte, n), from: make([]netip.AddrPort, n)}
	for range n {
		m.bufs = append(m.bufs, make([]byte, 65535))
	}
	return m
}

func (m *mailbox) receive() (int, error) {
	return m.u.Receive(m.bufs, m.sizes, m.segs, m.tos, m.from)
}

func (m *mailbox) next(t testing.TB) datagram {
	t.Helper()
	for len(m.waiting) == 0 {
		n, err := m.receive()
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		for i := range n {
			m.unpack(i)
		}
	}
	d := m.waiting[0]
	m.waiting = m.waiting[1:]
	return d
}

func (m *mailbox) unpack(i int) {
	b := bytes.Clone(m.bufs[i][:m.sizes[i]])
	if len(b) > m.segs[i] {
		m.trains++
	}
	for len(b) > 0 {
		n := min(m.segs[i], len(b))
		m.waiting = append(m.waiting, datagram{b[:n], m.tos[i], m.from[i]})
		b = b[n:]
	}
}

// noise is random bytes, by a fixed seed.
func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// scatter cuts b at random places, several of which may be the same.
func scatter(r *rand.Rand, b []byte, cuts int) (parts [][]byte) {
	for range cuts {
		n := r.IntN(len(b) + 1)
		parts = append(parts, b[:n])
		b = b[n:]
	}
	return append(parts, b)
}

// udpShapes are lengths of trains around everything that bounds them.
var udpShapes = []struct{ size, total int }{
	{0, 1}, {0, 1400}, {0, 1452}, {1, 1}, {1, 2}, {1, 65}, {100, 99}, {100, 100}, {100, 101},
	{100, 6400}, {100, 6401}, {1400, 44 * 1400}, {1400, 46*1400 + 1}, {1400, 65507}, {1400, 65508},
	{1400, 65536}, {1452, 65535}, {1452, 200_000}, {64, 64 * 64}, {64, 64*64*3 + 1},
}

// sendsExactly sends every shape by every way of cutting it in parts, and
// checks datagram by datagram what arrives.
func sendsExactly(t *testing.T, tx, rx *UDP) *mailbox {
	t.Helper()
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	box := newMailbox(rx, 8)
	for _, s := range udpShapes {
		for _, cuts := range []int{0, 1, 40} {
			want := noise(r, s.total)
			parts := scatter(r, want, cuts)
			sent := make(chan error, 1)
			go func() { sent <- tx.Send(r.IntN(tx.Paths()), rx.LocalAddr(), 0, parts, s.size) }()
			size := s.size
			if size == 0 {
				size = s.total
			}
			for i := 0; len(want) > 0; i++ {
				n := min(size, len(want))
				if got := box.next(t).bytes; !bytes.Equal(got, want[:n]) {
					t.Fatalf("seed %d: %d bytes as datagrams of %d in %d parts: datagram %d has %d bytes, wrong ones or not the %d wanted",
						seed, s.total, s.size, cuts+1, i, len(got), n)
				}
				want = want[n:]
			}
			if err := <-sent; err != nil {
				t.Fatalf("Send: %v", err)
			}
		}
	}
	if d := tx.Drops() + rx.Drops(); d != 0 {
		t.Errorf("%d datagrams dropped", d)
	}
	return box
}

func TestUDP_carriesEveryTrainExactly(t *testing.T) {
	for _, c := range []UDPConfig{{Listen: loopback4}, {Listen: loopback6}, {Listen: loopback4, ZeroChecksum: true}, {Listen: loopback6, ZeroChecksum: true}} {
		t.Run(fmt.Sprintf("%v zero=%v", c.Listen.Addr(), c.ZeroChecksum), func(t *testing.T) {
			sendsExactly(t, openUDP(t, c), openUDP(t, c))
		})
	}
}

func TestUDP_eachPathHasItsPort(t *testing.T) {
	tx, rx := openUDP(t, UDPConfig{Listen: loopback4, Paths: 5}), openUDP(t, UDPConfig{Listen: loopback4})
	if tx.Paths() != 5 || rx.Paths() != DefaultUDPPaths {
		t.Errorf("%d and %d paths", tx.Paths(), rx.Paths())
	}
	box, ports := newMailbox(rx, 1), make(map[netip.AddrPort]int)
	for i := range 10 {
		if err := tx.Send(i%5, rx.LocalAddr(), 0, [][]byte{{byte(i)}}, 0); err != nil {
			t.Fatal(err)
		}
		d := box.next(t)
		if first, seen := ports[d.from]; seen != (i >= 5) || seen && first != i%5 {
			t.Errorf("datagram %d came from %v, as datagram %d did", i, d.from, first)
		}
		ports[d.from] = i % 5
		if d.from.Addr() != loopback4.Addr() || d.from.Port() == tx.LocalAddr().Port() {
			t.Errorf("datagram %d came from %v; the receiver's own port is %v", i, d.from, tx.LocalAddr())
		}
	}
}

func TestUDP_refusesWhatIsTooLong(t *testing.T) {
	for _, c := range []struct {
		listen netip.AddrPort
		most   int
	}{{loopback4, 1472}, {loopback6, 1452}} {
		tx, rx := openUDP(t, UDPConfig{Listen: c.listen, MTU: 1500}), openUDP(t, UDPConfig{Listen: c.listen})
		if tx.MTU() != 1500 {
			t.Errorf("MTU %d", tx.MTU())
		}
		b := make([]byte, 3*(c.most+1))
		if err := tx.Send(0, rx.LocalAddr(), 0, [][]byte{b[:c.most]}, 0); err != nil {
			t.Errorf("%v: %d bytes: %v", c.listen, c.most, err)
		}
		if err := tx.Send(0, rx.LocalAddr(), 0, [][]byte{b[:c.most+1]}, 0); !errors.Is(err, ErrMessageSize) {
			t.Errorf("%v: %d bytes: %v", c.listen, c.most+1, err)
		}
		if err := tx.Send(0, rx.LocalAddr(), 0, [][]byte{b}, c.most+1); !errors.Is(err, ErrMessageSize) {
			t.Errorf("%v: a train of such: %v", c.listen, err)
		}
		if d := tx.Drops(); d != 4 {
			t.Errorf("%v: %d drops, want 4", c.listen, d)
		}
	}
}

func TestUDP_refusesPeersItCannotReach(t *testing.T) {
	for _, c := range []struct {
		listen netip.AddrPort
		to     string
	}{{loopback4, "[::1]:9"}, {loopback6, "127.0.0.1:9"}, {loopback6, "[fe80::1%lo]:9"}} {
		u := openUDP(t, UDPConfig{Listen: c.listen, Paths: 1})
		err := u.Send(0, netip.MustParseAddrPort(c.to), 0, [][]byte{make([]byte, 200)}, 100)
		if err == nil || !strings.Contains(err.Error(), c.to) {
			t.Errorf("Send from %v to %s: %v, want an error that names the peer", c.listen, c.to, err)
		}
		if u.Drops() != 2 {
			t.Errorf("Send from %v to %s: %d drops, want 2", c.listen, c.to, u.Drops())
		}
	}
}

func TestUDP_refusesBadConfiguration(t *testing.T) {
	for _, c := range []struct {
		UDPConfig
		names string
	}{
		{UDPConfig{}, "Listen"},
		{UDPConfig{Listen: loopback4, Paths: -1}, "Paths"},
		{UDPConfig{Listen: loopback4, Paths: 257}, "Paths"},
		{UDPConfig{Listen: loopback4, MTU: 575}, "MTU"},
		{UDPConfig{Listen: loopback6, MTU: 1279}, "MTU"},
		{UDPConfig{Listen: loopback4, MTU: 65536}, "MTU"},
	} {
		if u, err := OpenUDP(c.UDPConfig); err == nil || !strings.Contains(err.Error(), c.names) {
			if err == nil {
				u.Close()
			}
			t.Errorf("%+v: %v, want an error that names %s", c.UDPConfig, err, c.names)
		}
	}
}

func TestUDP_closeEndsAllCalls(t *testing.T) {
	u := openUDP(t, UDPConfig{Listen: loopback4, Paths: 2})
	ended := make(chan error)
	for range 2 {
		go func() {
			_, err := newMailbox(u, 1).receive()
			ended <- err
		}()
	}
	for range 2 {
		if err := u.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for range 2 {
		if err := <-ended; err != net.ErrClosed {
			t.Errorf("Receive, waiting: %v", err)
		}
	}
	if _, err := newMailbox(u, 1).receive(); err != net.ErrClosed {
		t.Errorf("Receive: %v", err)
	}
	if err := u.Send(1, loopback4, 0, [][]byte{{1}}, 0); err != net.ErrClosed {
		t.Errorf("Send: %v", err)
	}
}

func TestUDP_unreachablePeersAreNotTheEnd(t *testing.T) {
	gone := openUDP(t, UDPConfig{Listen: loopback4})
	nobody := gone.LocalAddr()
	gone.Close()
	u := openUDP(t, UDPConfig{Listen: loopback4, Paths: 1})
	box := newMailbox(u, 1)
	for i := range 3 { // of each other's ICMP errors nobody learns
		if err := u.Send(0, nobody, 0, [][]byte{{0xff}}, 0); err != nil {
			t.Fatal(err)
		}
		if err := u.Send(0, u.LocalAddr(), 0, [][]byte{{byte(i)}}, 0); err != nil {
			t.Fatal(err)
		}
		if d := box.next(t); !bytes.Equal(d.bytes, []byte{byte(i)}) {
			t.Errorf("received %x", d.bytes)
		}
	}
}

func TestUDP_toleratesEmptyCalls(t *testing.T) {
	u := openUDP(t, UDPConfig{Listen: loopback4})
	for _, parts := range [][][]byte{nil, {{}}, {nil, {}}} {
		for _, size := range []int{0, 100} {
			if err := u.Send(0, u.LocalAddr(), 0, parts, size); err != nil {
				t.Error(err)
			}
		}
	}
	if n, err := newMailbox(u, 0).receive(); n != 0 || err != nil {
		t.Errorf("Receive without buffers: %d, %v", n, err)
	}
}
