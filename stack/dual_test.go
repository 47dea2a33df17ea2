package stack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/slowtest"
	"weft/topology"
)

// newDualHost starts a Host with addresses of both families.
func newDualHost(t testing.TB, w *wire, addr netip.Addr, change ...func(*Config)) *Host {
	t.Helper()
	six := topology.Addr6(addr)
	return newHost(t, w, addr, append([]func(*Config){func(c *Config) {
		c.Address6, c.CarryIPv6 = six, true
		w.mu.Lock()
		w.ends[six] = w.ends[addr]
		w.mu.Unlock()
	}}, change...)...)
}

// roundTrip dials an address, and sends data there and back.
func roundTrip(t *testing.T, a *Host, l net.Listener, network, address string, n int) (dialled, accepted net.Conn) {
	t.Helper()
	data := make([]byte, n)
	rand.NewChaCha8([32]byte{2}).Read(data)
	done := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			done <- nil
			return
		}
		io.Copy(c, c)
		c.(TCPConn).CloseWrite()
		done <- c
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := a.DialContext(ctx, network, address)
	if err != nil {
		l.Close()
		t.Fatalf("%s %s: %v", network, address, err)
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	go func() {
		c.Write(data)
		c.(TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || sha256.Sum256(got) != sha256.Sum256(data) {
		t.Fatalf("%s %s: %d bytes of %d came back, %v", network, address, len(got), n, err)
	}
	return c, <-done
}

// A Host with two addresses listens and dials by both families, and says by which.
func TestHost_dualStack(t *testing.T) {
	w := newWire(t)
	a, b := newDualHost(t, w, addrA), newDualHost(t, w, addrB)
	if b.Address() != addrB || b.Address6() != topology.Addr6(addrB) {
		t.Errorf("%v, %v", b.Address(), b.Address6())
	}
	four, six := addrB.String(), b.Address6().String()
	for i, c := range []struct {
		listenNet, listen string
		local             string // of the listener
		to                []string
		refused           []string
	}{
		{"tcp", ":", "::", []string{four, six}, nil},
		{"tcp", "[::]:", "::", []string{four, six}, nil},
		{"tcp", "0.0.0.0:", four, []string{four}, []string{six}},
		{"tcp4", ":", four, []string{four}, []string{six}},
		{"tcp6", ":", six, []string{six}, []string{four}},
		{"tcp6", "[::]:", six, []string{six}, []string{four}},
		{"tcp", four + ":", four, []string{four}, []string{six}},
		{"tcp", "[" + six + "]:", six, []string{six}, []string{four}},
	} {
		port := fmt.Sprint(7000 + i)
		l, err := b.Listen(c.listenNet, c.listen+port)
		if err != nil {
			t.Fatalf("%s %s: %v", c.listenNet, c.listen, err)
		}
		if got := l.Addr().(*net.TCPAddr); got.IP.String() != c.local || fmt.Sprint(got.Port) != port {
			t.Errorf("%s %s: listens on %v", c.listenNet, c.listen, got)
		}
		for _, to := range c.to {
			x, y := roundTrip(t, a, l, "tcp", net.JoinHostPort(to, port), 200_000)
			for _, e := range []struct{ got, want string }{
				{x.RemoteAddr().String(), net.JoinHostPort(to, port)},
				{y.LocalAddr().String(), net.JoinHostPort(to, port)},
				{y.RemoteAddr().String(), x.LocalAddr().String()},
			} {
				if e.got != e.want {
					t.Errorf("%s %s, to %s: address %s, want %s", c.listenNet, c.listen, to, e.got, e.want)
				}
			}
			x.Close()
			y.Close()
		}
		for _, to := range c.refused {
			if _, err := a.Dial("tcp", net.JoinHostPort(to, port)); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%s %s, to %s: %v", c.listenNet, c.listen, to, err)
			}
		}
		l.Close()
	}
}

// A Host reaches itself by either address.
func TestHost_reachesItselfByBothFamilies(t *testing.T) {
	h := newDualHost(t, newWire(t), addrA)
	l, err := h.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{":80", "[::]:80", "0.0.0.0:80", h.Address().String() + ":80", "[" + h.Address6().String() + "]:80"} {
		roundTrip(t, h, l, "tcp", to, 1000)
	}
	roundTrip(t, h, l, "tcp6", ":80", 1000)
}

func TestHost_dualStackErrors(t *testing.T) {
	w := newWire(t)
	dual, single := newDualHost(t, w, addrA), newHost(t, w, addrB)
	var unknown net.UnknownNetworkError
	var address *net.AddrError
	for _, network := range []string{"tcp6", "udp6"} {
		if _, err := single.Dial(network, "[2001:db8::1]:80"); !errors.As(err, &unknown) {
			t.Errorf("%s without an IPv6 address: %v", network, err)
		}
	}
	for _, c := range []struct {
		h             *Host
		network, addr string
	}{
		{single, "tcp", "[2001:db8::1]:80"},
		{dual, "tcp4", "[2001:db8::1]:80"},
		{dual, "tcp6", "10.0.0.130:80"},
		{dual, "tcp", "[fe80::1%eth0]:80"},
	} {
		if _, err := c.h.Dial(c.network, c.addr); !errors.As(err, &address) {
			t.Errorf("%s %s: %v", c.network, c.addr, err)
		}
	}
	if _, err := dual.Listen("tcp6", "[2001:db8::1]:80"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("listen on a foreign address: %v", err)
	}
	for _, a := range []string{"fe80::1", "::1", "10.0.0.130", topology.Addr6(addrB).String()} {
		c := Config{Address: addrA, Address6: netip.MustParseAddr(a), Topology: fatTree, Device: w.plug(addrA)}
		if _, err := New(c); err == nil || !bytes.Contains([]byte(err.Error()), []byte("Config.Address6")) {
			t.Errorf("Address6 %s: %v", a, err)
		}
	}
}

func TestHost_dualStackDatagrams(t *testing.T) {
	w := newWire(t)
	a, b := newDualHost(t, w, addrA), newDualHost(t, w, addrB)
	server, err := b.ListenPacket("udp", ":5000")
	if err != nil {
		t.Fatal(err)
	}
	server.SetDeadline(time.Now().Add(time.Minute))
	buf := make([]byte, 2000)
	for _, to := range []netip.Addr{addrB, b.Address6()} {
		c, err := a.Dial("udp", netip.AddrPortFrom(to, 5000).String())
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(time.Minute))
		c.Write([]byte("ping"))
		n, from, err := server.ReadFrom(buf)
		if err != nil || string(buf[:n]) != "ping" || from.String() != c.LocalAddr().String() {
			t.Fatalf("%v: %q from %v, %v", to, buf[:n], from, err)
		}
		if _, err := server.WriteTo([]byte("pong"), from); err != nil {
			t.Fatal(err)
		}
		if n, err = c.Read(buf); err != nil || string(buf[:n]) != "pong" {
			t.Errorf("%v: %q, %v", to, buf[:n], err)
		}
	}
	four, err := a.ListenPacket("udp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	var wrong *net.AddrError
	if _, err := four.WriteTo([]byte("x"), &net.UDPAddr{IP: b.Address6().AsSlice(), Port: 5000}); !errors.As(err, &wrong) {
		t.Errorf("IPv6 by a socket of IPv4: %v", err)
	}
	six, err := a.ListenPacket("udp6", ":0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := six.WriteTo([]byte("x"), &net.UDPAddr{IP: addrB.AsSlice(), Port: 5000}); !errors.As(err, &wrong) {
		t.Errorf("IPv4 by a socket of IPv6: %v", err)
	}
}

// Under all kinds of units, by both carriers, IPv6 is sprayed and put in order.
func TestHost_sprays6(t *testing.T) {
	slowtest.System(t)
	for _, policy := range []string{"presto", "drb", "letflow", "ecmp", "luopan", "conga"} {
		for _, carrier := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
			w := newWire(t)
			change := func(c *Config) { c.Policy, c.Carrier = policy, carrier }
			a, b := newDualHost(t, w, addrA, change), newDualHost(t, w, addrB, change)
			l, err := b.Listen("tcp6", ":80")
			if err != nil {
				t.Fatal(err)
			}
			roundTrip(t, a, l, "tcp6", netip.AddrPortFrom(b.Address6(), 80).String(), 2_000_000)
			ways := make(map[netip.Addr]bool)
			for _, s := range w.sightings(func(s sighting) bool {
				return s.packet.Flow.Src == flowcell.AddressFrom(a.Address6()) && s.packet.Payload > 0
			}) {
				if !s.bounce.IsValid() {
					t.Fatalf("%s, %v: a plain packet %+v", policy, carrier, s.packet)
				}
				ways[s.bounce] = true
			}
			if many := policy == "presto" || policy == "drb" || policy == "luopan"; many && len(ways) != 4 || policy == "ecmp" && len(ways) != 1 {
				t.Errorf("%s, %v: %d ways", policy, carrier, len(ways))
			}
			if in := b.Stats(); policy == "presto" && in.Resequencer.FlowsNumbered == 0 {
				t.Errorf("%v: the receiver does not believe the numbers: %+v", carrier, in.Resequencer)
			}
			a.Close()
			b.Close()
		}
	}
}

// By default IPv6 leaves plain.
func TestHost_leaves6PlainByDefault(t *testing.T) {
	w := newWire(t)
	change := func(c *Config) { c.CarryIPv6 = false }
	a, b := newDualHost(t, w, addrA, change), newDualHost(t, w, addrB, change)
	l, err := b.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, a, l, "tcp", netip.AddrPortFrom(b.Address6(), 80).String(), 500_000)
	if s := w.sightings(func(s sighting) bool { return s.bounce.IsValid() && s.packet.Flow.Src.IP().Is6() }); len(s) > 0 {
		t.Errorf("%d packets were encapsulated", len(s))
	}
}

// One spine's links are smaller than all others: its switch says so, of a packet in IPv4, in
// ICMP.
func TestHost_learnsThePathMTUFor6(t *testing.T) {
	w := newWire(t)
	const mtu = 1400
	small, tooLong := fatTree.Paths(0, 15).Addr(2), 0
	w.delay = func(s sighting, packet []byte, send func([]byte)) {
		if s.bounce != small || packet[0]>>4 != 6 || len(packet)+encap.Overhead <= mtu {
			send(packet)
			return
		}
		outer, err := encap.NewIPIPOuter(addrA, small)
		if err != nil {
			panic(err)
		}
		quote, err := outer.Encapsulate(append(make([]byte, encap.MaxOverhead), packet...), 1)
		if err != nil {
			panic(err)
		}
		b := append(make([]byte, 28), quote[:548]...)
		b[0], b[8], b[9] = 0x45, 64, 1
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		copy(b[12:], small.AsSlice())
		copy(b[16:], addrA.AsSlice())
		b[20], b[21] = 3, 4
		binary.BigEndian.PutUint16(b[26:], mtu)
		icmp := header.ICMPv4(b[20:])
		icmp.SetChecksum(header.ICMPv4Checksum(icmp, 0))
		fixed(b)
		w.mu.Lock()
		back := w.ends[addrA]
		tooLong++
		w.mu.Unlock()
		back.Write([][]byte{b}, 0)
	}
	a, b := newDualHost(t, w, addrA), newDualHost(t, w, addrB)
	l, err := b.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Dial("tcp", netip.AddrPortFrom(b.Address6(), 80).String())
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 2_000_000)
	rand.NewChaCha8([32]byte{1}).Read(data)
	go func() {
		c.Write(data)
		c.Close()
	}()
	d, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	d.SetReadDeadline(time.Now().Add(time.Minute))
	if got, err := io.ReadAll(d); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := a.Stats().Ingress; s.Relayed == 0 || s.Relayed != uint64(tooLong) || tooLong > 100 {
		t.Errorf("%d packets were too long; %+v", tooLong, s)
	}
}

// Names with addresses of both families: the second family is tried when the first is
// silent or refuses.
func TestDial_triesBothFamilies(t *testing.T) {
	w := newWire(t)
	a, b := newDualHost(t, w, addrA), newDualHost(t, w, addrB)
	l, err := b.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	nobody6 := netip.MustParseAddr("2001:db8::dead")
	other := newDualHost(t, w, netip.MustParseAddr("10.1.0.130")) // listens to nothing
	for name, addrs := range map[string][]netip.Addr{
		"silent IPv6":   {nobody6, addrB},
		"silent IPv4":   {b.Address6(), noHost},
		"refusing IPv6": {other.Address6(), addrB},
		"refusing IPv4": {other.Address(), b.Address6()},
		"both":          {addrB, b.Address6()},
	} {
		resolveTo(t, addrs...)
		c, d := roundTrip(t, a, l, "tcp", "service.weft.test.:80", 1000)
		c.Close()
		d.Close()
		_ = name
	}
	resolveTo(t, other.Address(), other.Address6())
	if _, err := a.Dial("tcp", "service.weft.test.:80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("both refuse: %v", err)
	}
	resolveTo(t, addrB)
	if _, err := a.Dial("tcp6", "service.weft.test.:80"); err == nil {
		t.Error("a name without an IPv6 address")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	resolveTo(t, nobody6, noHost)
	if _, err := a.DialContext(ctx, "tcp", "service.weft.test.:80"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("both are silent: %v", err)
	}
}
