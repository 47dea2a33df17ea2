package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/topoupdate"
)

// pair is two ends of two cables.
func pair(t *testing.T) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, "10.0.2.1"), newEnd(t, "10.4.1.1")
	cable(t, a, b, "p0", 901)
	cable(t, a, b, "p1", 902)
	return a, b
}

var twoPorts = Config{Interfaces: []string{"p0", "p1"}}

func TestPorts_aMessageReachesTheOtherEndOfTheCableAlone(t *testing.T) {
	a, b := pair(t)
	from, to := a.open(twoPorts), b.open(twoPorts)
	for port := range 2 {
		text := fmt.Sprint("by port ", port)
		from.Send(port, []byte(text))
		to.until(text, func() bool { return len(to.messages) > 0 })
		to.settle()
		if want := []message{{port, text}}; !slices.Equal(to.messages, want) {
			t.Errorf("got %v, want %v", to.messages, want)
		}
		to.messages = nil
	}
	from.settle()
	if len(from.messages) > 0 {
		t.Errorf("the sender hears itself: %v", from.messages)
	}
}

// What is on the wire, as a packet socket sees it.
func TestPorts_whatIsOnTheWire(t *testing.T) {
	for _, address := range []string{"10.0.2.1", ""} {
		a, b := newEnd(t, address), newEnd(t, "10.4.1.1")
		cable(t, a, b, "p0", 901)
		from := a.open(Config{Interfaces: []string{"p0"}})
		to := b.open(Config{Interfaces: []string{"p0"}})
		var tap int
		b.must(func() (err error) {
			tap, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, unix.ETH_P_IP>>8|unix.ETH_P_IP&0xff<<8)
			return err
		})
		defer unix.Close(tap)
		unix.SetsockoptTimeval(tap, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})
		from.Send(0, []byte("hello"))
		p := make([]byte, 2000)
		for {
			n, _, err := unix.Recvfrom(tap, p, 0)
			if err != nil {
				t.Fatal(err)
			}
			if p[9] == unix.IPPROTO_UDP { // else it says who listens to the group (IGMP)
				p = p[:n]
				break
			}
		}
		if p[8] != 255 || p[1] != 0xD0 {
			t.Errorf("TTL %d, type of service %#x", p[8], p[1])
		}
		src, dst := netip.AddrFrom4([4]byte(p[12:])), netip.AddrFrom4([4]byte(p[16:]))
		if want := a.address; src != want && (want.IsValid() || src != netip.IPv4Unspecified()) || dst != topoupdate.Group {
			t.Errorf("from %s to %s; the node has %v", src, dst, a.address)
		}
		if got := binary.BigEndian.Uint16(p[22:]); got != topoupdate.Port {
			t.Errorf("to port %d", got)
		}
		to.until("a message from "+address, func() bool { return len(to.messages) > 0 })
	}
}

// sendTTL sends a message by p0 with a TTL of one's own.
func (e *end) sendTTL(ttl int, text string) {
	e.t.Helper()
	e.must(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return errors.Join(
			unix.BindToDevice(fd, "p0"),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, ttl),
			unix.Sendto(fd, []byte(text), 0, &unix.SockaddrInet4{Port: topoupdate.Port, Addr: topoupdate.Group.As4()}))
	})
}

func TestPorts_whatWasForwardedIsDroppedAndCounted(t *testing.T) {
	a, b := pair(t)
	to := b.open(twoPorts)
	to.settle()
	for _, ttl := range []int{1, 64, 254} {
		a.sendTTL(ttl, "forged")
	}
	a.sendTTL(255, "honest")
	to.until("the honest one", func() bool { return len(to.messages) > 0 })
	if want := []message{{0, "honest"}}; !slices.Equal(to.messages, want) {
		t.Errorf("got %v", to.messages)
	}
	if s := to.Stats(); s.Ports[0].Dropped != 3 || s.Ports[0].Received != 1 || s.Ports[1].Dropped != 0 {
		t.Errorf("counted %+v", s)
	}
}

func TestPorts_whatIsTooLongShowsThatItIs(t *testing.T) {
	a, b := pair(t)
	from, to := a.open(twoPorts), b.open(twoPorts)
	for _, n := range []int{0, topoupdate.MaxMessage, topoupdate.MaxMessage + 1, topoupdate.MaxMessage + 200, 20000} {
		to.messages = nil
		from.Send(0, make([]byte, n))
		to.until("a message", func() bool { return len(to.messages) > 0 })
		if got := len(to.messages[0].text); got != min(n, topoupdate.MaxMessage+1) {
			t.Errorf("of %d bytes %d arrived", n, got)
		}
	}
}

func TestPorts_secondOpenIsRefusedUnlessShared(t *testing.T) {
	a, b := pair(t)
	b.open(twoPorts)
	b.must(func() error {
		p, err := Open(twoPorts)
		if err == nil {
			p.Close()
			return errors.New("a second one was opened")
		}
		if !errors.Is(err, unix.EADDRINUSE) || !strings.Contains(err.Error(), ": UDP port 9338: another program") {
			return err
		}
		return nil
	})
	shared := Config{Interfaces: []string{"p0"}, Shared: true}
	b2 := newEnd(t, "10.4.1.1")
	cable(t, a, b2, "q0", 950)
	shared.Interfaces[0] = "q0"
	one, two := b2.open(shared), b2.open(shared)
	a.open(shared).Send(0, []byte("for all"))
	for _, r := range []*recorder{one, two} {
		r.until("the message", func() bool { return len(r.messages) == 1 })
	}
}

func TestPorts_closeEndsWait(t *testing.T) {
	_, b := pair(t)
	r := b.open(twoPorts)
	r.settle()
	ended := make(chan error)
	go func() { ended <- r.Wait(time.Time{}, r) }()
	time.Sleep(20 * time.Millisecond) // most likely it waits by now; if not, so much the better
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Wait: %v", err)
	}
	if err := r.Wait(time.Now().Add(time.Hour), r); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Wait after Close: %v", err)
	}
	r.Send(0, []byte("x"))
	r.Stats()
	// The sockets are gone: they can be opened anew.
	b.open(twoPorts)
}

// A port that is flooded has its turn, and no more.
func TestPorts_aFloodOnOnePortLeavesTheOthersTheirTurn(t *testing.T) {
	a, b := pair(t)
	from, to := a.open(twoPorts), b.open(twoPorts)
	to.settle()
	for range 2000 {
		from.Send(0, []byte("flood"))
	}
	from.Send(1, []byte("hello"))
	if err := to.Wait(time.Now().Add(20*time.Second), to); err != nil {
		t.Fatal(err)
	}
	if len(to.messages) != turn+1 || to.messages[turn] != (message{1, "hello"}) && to.messages[0] != (message{1, "hello"}) {
		t.Errorf("%d messages, the last %v", len(to.messages), to.messages[len(to.messages)-1])
	}
	to.until("the rest", func() bool { s := to.Stats().Ports[0]; return s.Received+s.Dropped == 2000 })
	if s := to.Stats().Ports[0]; s.Dropped == 0 {
		t.Errorf("nothing was dropped: the buffer has no bound? %+v", s)
	}
}

// discard is a Handler that counts.
type discard struct{ n int }

func (*discard) Carrier(int, bool)                 {}
func (d *discard) Receive(int, netip.Addr, []byte) { d.n++ }

func TestPorts_noAllocationPerMessage(t *testing.T) {
	a, b := pair(t)
	from, to := a.open(twoPorts), b.open(twoPorts)
	text := make([]byte, topoupdate.MaxMessage)
	d := new(discard)
	if n := testing.AllocsPerRun(200, func() {
		d.n = 0
		from.Send(0, text)
		from.Send(1, text)
		for d.n < 2 {
			if err := to.Wait(time.Now().Add(time.Second), d); err != nil {
				t.Fatal(err)
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations for two messages", n)
	}
}
