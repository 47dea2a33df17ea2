package stack

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/flowcell"
	"weft/link"
	"weft/resequencer"
	"weft/topology"
)

func TestNew_rejectsBadConfig(t *testing.T) {
	near, _ := link.NewPair(1500, 1)
	small, _ := link.NewPair(100, 1)
	good := Config{Address: addrA, Topology: fatTree, Device: near}
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"no topology", func(c *Config) { c.Topology = nil }, "Config.Topology"},
		{"no device", func(c *Config) { c.Device = nil }, "Config.Device"},
		{"small MTU", func(c *Config) { c.Device = small }, "MTU of 100"},
		{"no address", func(c *Config) { c.Address = netip.Addr{} }, "Config.Address"},
		{"address of nobody", func(c *Config) { c.Address = netip.MustParseAddr("10.0.0.9") }, "10.0.0.9"},
		{"address of a switch", func(c *Config) { c.Address = netip.MustParseAddr("10.4.1.1") }, "switch c1.1"},
		{"unknown policy", func(c *Config) { c.Policy = "best" }, "ecmp, rb, rrb, drb"},
		{"resequencer", func(c *Config) { c.Resequencer.Hold = -1 }, "Config.Resequencer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			h, err := New(cfg)
			if err == nil {
				h.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not mention %q", err, c.want)
			}
		})
	}
}

func TestNew_acceptsMappedAddress(t *testing.T) {
	w := newWire(t)
	h := newHost(t, w, addrA, func(c *Config) { c.Address = netip.AddrFrom16(addrA.As16()) })
	if h.Address() != addrA {
		t.Errorf("Address() = %v", h.Address())
	}
}

// transfer sends n random bytes from a to b and checks that they arrive.
func transfer(t *testing.T, a, b *Host, n int) {
	t.Helper()
	c1, c2 := connect(t, a, b)
	defer c2.Close()
	data := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(data)
	go func() {
		c1.Write(data)
		c1.Close()
	}()
	c2.SetReadDeadline(time.Now().Add(time.Minute))
	got, err := io.ReadAll(c2)
	if err != nil {
		t.Fatal(err)
	}
	if sha256.Sum256(got) != sha256.Sum256(data) {
		t.Fatalf("%d bytes arrived changed (%d sent)", len(got), n)
	}
}

func bounces(s []sighting) (names []string) {
	for _, x := range s {
		id, _ := fatTree.ByAddr(x.bounce)
		r, _ := fatTree.CoreNumber(id)
		names = append(names, fmt.Sprintf("3.%d", r))
	}
	return names
}

func TestHost_spraysByDigitReversal(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	transfer(t, a, b, 4_000_000)
	cycle := []string{"3.0", "3.2", "3.1", "3.3"}
	for _, c := range []struct {
		name  string
		match func(sighting) bool
	}{
		{"data", func(s sighting) bool {
			return s.packet.Flow.Src == flowcell.AddressFrom(addrA) && !s.packet.IsPureACK()
		}},
		{"pure ACKs", func(s sighting) bool { return s.packet.Flow.Src == flowcell.AddressFrom(addrB) && s.packet.IsPureACK() }},
	} {
		got := bounces(w.sightings(c.match))
		if len(got) < 5 {
			t.Fatalf("%s: only %d packets", c.name, len(got))
		}
		at := slices.Index(cycle, got[0])
		for i, g := range got {
			if want := cycle[(at+i)%4]; g != want {
				t.Fatalf("%s: packet %d by %s, want %s: %v", c.name, i, g, want, got[:i+1])
			}
		}
	}
}

func TestHost_oneFlowOnOnePath(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		udp    bool
		paths  int
	}{
		{"TCP under ecmp", func(c *Config) { c.Policy = "ecmp" }, false, 1},
		{"UDP under drb", func(c *Config) {}, true, 1},
		{"UDP of all sizes", func(c *Config) {}, true, 1},
		{"UDP sprayed on request", func(c *Config) { c.SprayDatagrams = true }, true, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			a, b := newHost(t, w, addrA, c.change), newHost(t, w, addrB, c.change)
			if c.udp {
				s, _ := b.ListenPacket("udp", ":53")
				conn, err := a.DialContext(context.Background(), "udp", "10.3.1.131:53")
				if err != nil {
					t.Fatal(err)
				}
				for i := range 8 {
					size := 100
					if c.name == "UDP of all sizes" {
						size = 1000 * (i + 1) // some are fragmented
					}
					conn.Write(make([]byte, size))
					s.ReadFrom(make([]byte, size))
				}
			} else {
				transfer(t, a, b, 50_000)
			}
			used := bounces(w.sightings(func(s sighting) bool { return s.packet.Flow.Src == flowcell.AddressFrom(addrA) }))
			slices.Sort(used)
			if n := len(slices.Compact(used)); n != c.paths {
				t.Errorf("%d paths, want %d", n, c.paths)
			}
		})
	}
}

func TestHost_bouncesNoHigherThanItMust(t *testing.T) {
	w := newWire(t)
	a := newHost(t, w, addrA)
	for _, c := range []struct {
		to     string
		layers []topology.Layer // of the bouncing switch; empty: direct
	}{
		{"10.0.0.131", nil}, // same rack
		{"10.0.1.130", []topology.Layer{topology.LayerAgg}}, // same pod
		{"10.1.0.130", []topology.Layer{topology.LayerCore}},
		{"192.0.2.1", nil}, // not of the fabric
	} {
		conn, err := a.DialContext(context.Background(), "udp", c.to+":53")
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte("x"))
		var got []sighting
		for range 100 {
			got = w.sightings(func(s sighting) bool { return s.packet.Flow.Dst.IP() == netip.MustParseAddr(c.to) })
			if len(got) > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if len(got) != 1 {
			t.Fatalf("to %s: %d packets", c.to, len(got))
		}
		id, _ := fatTree.ByAddr(got[0].bounce)
		if direct := !got[0].bounce.IsValid(); direct != (c.layers == nil) {
			t.Errorf("to %s: direct is %v", c.to, direct)
		} else if !direct && fatTree.Node(id).Layer != c.layers[0] {
			t.Errorf("to %s: bounced at %s", c.to, fatTree.Node(id).Name)
		}
	}
}

func TestHostSetTopology_avoidsDeadPaths(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	core0, _ := fatTree.Lookup("3.0")
	if err := a.SetTopology(fatTree.WithoutNode(core0.ID)); err != nil {
		t.Fatal(err)
	}
	transfer(t, a, b, 100_000)
	count := map[string]int{}
	for _, n := range bounces(w.sightings(func(s sighting) bool {
		return s.packet.Flow.Src == flowcell.AddressFrom(addrA) && !s.packet.IsPureACK()
	})) {
		count[n]++
	}
	if count["3.0"] != 0 {
		t.Errorf("%d packets by the dead switch", count["3.0"])
	}
	least, most := 1<<30, 0
	for _, n := range []string{"3.1", "3.2", "3.3"} {
		least, most = min(least, count[n]), max(most, count[n])
	}
	if most-least > 1 {
		t.Errorf("uneven over what is left: %v", count)
	}
	other, _ := topology.FatTree(2)
	if err := a.SetTopology(other); err != nil {
		t.Errorf("10.0.0.130 is in fat-tree:k=2, too: %v", err)
	}
	if err := b.SetTopology(nil); err == nil {
		t.Error("no topology was accepted")
	}
	if err := b.SetTopology(other); err == nil {
		t.Error("a topology without the Host was accepted")
	}
}

func TestHostSetTopology_lastResort(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	c1, c2 := connect(t, a, b)
	cut := fatTree
	for _, name := range []string{"a0.2", "a0.3"} {
		n, _ := fatTree.Lookup(name)
		cut = cut.WithoutNode(n.ID)
	}
	a.SetTopology(cut)
	// Nobody knows a way, and there is one.
	if _, err := c1.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	c2.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadFull(c2, make([]byte, 5)); err != nil {
		t.Errorf("while no path is said to be live: %v", err)
	}
}

// Reordering: every third data packet is overtaken by the next.
func TestHost_restoresOrder(t *testing.T) {
	for _, c := range []struct {
		name      string
		change    func(*Config)
		delivered bool // out of order to TCP
	}{
		{"resequencer", func(c *Config) { c.Resequencer.Hold = time.Second }, false},
		{"off", func(c *Config) { c.Resequencer.Discipline = resequencer.Off }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s resequencer.Stats
			var tcp TCPStats
			for try := 0; ; try++ {
				w := newWire(t)
				w.delay = overtaken()
				a, b := newHost(t, w, addrA), newHost(t, w, addrB, c.change)
				transfer(t, a, b, 300_000)
				s, tcp = b.Stats().Resequencer, a.Stats().TCP
				if tcp.Timeouts == 0 || try == 4 { // a machine that stood still proves nothing
					break
				}
			}
			if s.ArrivedOutOfOrder == 0 {
				t.Fatal("nothing arrived out of order: the test tests nothing")
			}
			// Netstack's tail loss probes (RFC 8985 §7) repeat a segment now
			// and then, whatever we do.
			if got := s.DeliveredOutOfOrder > tcp.Retransmits; got != c.delivered {
				t.Errorf("arrived out of order: %d, delivered: %d", s.ArrivedOutOfOrder, s.DeliveredOutOfOrder)
			}
			if !c.delivered && tcp.Retransmits > s.ArrivedOutOfOrder/10 {
				t.Errorf("TCP took reordering for loss: %+v", tcp)
			}
		})
	}
}

// overtaken returns what delays every third data packet until the next has gone, or for a
// millisecond if there is none.
func overtaken() func(sighting, []byte, func([]byte)) {
	var mu sync.Mutex
	var late []byte
	n := 0
	return func(s sighting, b []byte, send func([]byte)) {
		mu.Lock()
		defer mu.Unlock()
		if s.packet.Payload == 0 {
			send(b)
			return
		}
		if n++; n%3 == 0 && late == nil {
			late = b
			time.AfterFunc(time.Millisecond, func() {
				mu.Lock()
				defer mu.Unlock()
				if late != nil {
					send(late)
					late = nil
				}
			})
			return
		}
		send(b)
		if late != nil {
			send(late)
			late = nil
		}
	}
}

func TestHost_repairsLoss(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	rng := rand.New(rand.NewPCG(7, 7))
	var mu sync.Mutex
	w.drop = func(sighting) bool {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(50) == 0
	}
	transfer(t, a, b, 400_000)
	if a.Stats().TCP.Retransmits == 0 {
		t.Error("2 % loss without a retransmit: the test tests nothing")
	}
	if r := b.Stats().Resequencer; r.TimedOut == 0 {
		t.Errorf("no hole was given up: %+v", r)
	}
}

func TestHost_http(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	l, err := b.Listen("tcp", "10.3.1.131:80")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, r.Body)
	}))
	server.Listener = l
	server.Start()
	defer server.Close()
	transport := &http.Transport{DialContext: a.DialContext}
	defer transport.CloseIdleConnections()
	body := strings.Repeat("weft ", 100_000)
	r, err := (&http.Client{Transport: transport}).Post("http://10.3.1.131/", "text/plain", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if got, err := io.ReadAll(r.Body); err != nil || string(got) != body {
		t.Errorf("%d bytes echoed, %v", len(got), err)
	}
}

func TestHost_answersEcho(t *testing.T) {
	w := newWire(t)
	b := newHost(t, w, addrB)
	w.forward(echoRequest())
	for range 1000 {
		if len(w.sightings(func(s sighting) bool {
			return s.packet.Flow.Proto == flowcell.ProtoICMP && s.packet.Flow.Src == flowcell.AddressFrom(addrB)
		})) == 1 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("no echo reply; %+v", b.Stats())
}

func TestHost_countsWhatItDrops(t *testing.T) {
	w := newWire(t)
	b := newHost(t, w, addrB)
	good := echoRequest()
	tcp := tcpSegment()
	change := func(p []byte, f func([]byte)) []byte {
		p = slices.Clone(p)
		f(p)
		return p
	}
	fix := func(p []byte) { // the header checksum, after a change
		ip := header.IPv4(p)
		ip.SetChecksum(0)
		ip.SetChecksum(^checksum.Checksum(p[:20], 0))
	}
	for _, c := range []struct {
		name   string
		packet []byte
		count  func(IngressStats) uint64
	}{
		{"truncated", good[:15], func(s IngressStats) uint64 { return s.Malformed }},
		{"total length too long", change(good, func(p []byte) { p[3] = 200 }), func(s IngressStats) uint64 { return s.Malformed }},
		{"bad IHL", change(good, func(p []byte) { p[0] = 0x41 }), func(s IngressStats) uint64 { return s.Malformed }},
		{"IPv6", change(good, func(p []byte) { p[0] = 0x60 }), func(s IngressStats) uint64 { return s.Malformed }},
		{"to nobody", change(good, func(p []byte) { p[19] = 9; fix(p) }), func(s IngressStats) uint64 { return s.NotForUs }},
		{"from loopback", change(good, func(p []byte) { p[12] = 127; fix(p) }), func(s IngressStats) uint64 { return s.Martian }},
		{"IP-in-IP to us", change(good, func(p []byte) { p[9] = 4; fix(p) }), func(s IngressStats) uint64 { return s.Encapsulated }},
		{"IP checksum", change(good, func(p []byte) { p[11]++ }), func(s IngressStats) uint64 { return s.BadChecksum }},
		{"TCP checksum", change(tcp, func(p []byte) { p[20+7]++ }), func(s IngressStats) uint64 { return s.BadChecksum }},
		{"TCP data offset", change(tcp, func(p []byte) { p[20+12] = 0xf0 }), func(s IngressStats) uint64 { return s.Malformed }},
	} {
		before := c.count(b.Stats().Ingress)
		b.Receive(c.packet)
		s := b.Stats().Ingress
		if c.count(s) != before+1 || s.Delivered != 0 {
			t.Errorf("%s: not counted where expected: %+v", c.name, s)
		}
	}
	b.Receive(tcp)
	b.Receive(good)
	if s := b.Stats().Ingress; s.Delivered != 2 {
		t.Errorf("good packets: %d delivered, want 2: %+v", s.Delivered, s)
	}
}

func FuzzHost_ingress(f *testing.F) {
	f.Add(echoRequest())
	f.Add(tcpSegment())
	near, _ := link.NewPair(1500, 1)
	h, err := New(Config{Address: addrB, Topology: fatTree, Device: near, Resequencer: resequencer.Config{TotalPackets: 64}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { h.Close() })
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= 20 { // past the first checks more often than chance would
			copy(b[16:20], addrB.AsSlice())
			b[10], b[11] = 0, 0
			if ihl := int(b[0]&15) * 4; b[0]>>4 == 4 && ihl >= 20 && ihl <= len(b) {
				header.IPv4(b).SetChecksum(^checksum.Checksum(b[:ihl], 0))
			}
		}
		before := h.Stats()
		h.Receive(b)
		after := h.Stats()
		i, j := before.Ingress, after.Ingress
		dropped := func(s IngressStats) uint64 {
			return s.Malformed + s.BadChecksum + s.NotForUs + s.Martian + s.Encapsulated + s.PathErrors
		}
		held := uint64(after.Resequencer.HeldPackets) - uint64(before.Resequencer.HeldPackets)
		if j.Packets-i.Packets != dropped(j)-dropped(i)+(j.Delivered-i.Delivered)+held {
			t.Errorf("a packet is unaccounted for: before %+v, after %+v", before, after)
		}
	})
}

var errDevice = errors.New("cable cut")

// brokenDevice fails to read once cut is closed.
type brokenDevice struct {
	*link.Memory
	cut chan struct{}
}

func (d brokenDevice) Read([][]byte, []int, int) (int, error) {
	<-d.cut
	return 0, errDevice
}

func TestHost_failsWithItsDevice(t *testing.T) {
	near, _ := link.NewPair(1500, 1)
	dev := brokenDevice{near, make(chan struct{})}
	h, err := New(Config{Address: addrA, Topology: fatTree, Device: dev})
	if err != nil {
		t.Fatal(err)
	}
	l, err := h.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Err(); err != nil {
		t.Errorf("Err() = %v while all is well", err)
	}
	close(dev.cut)
	if _, err := l.Accept(); !errors.Is(err, errDevice) {
		t.Errorf("Accept: %v", err)
	}
	if _, err := h.Listen("tcp", ":81"); !errors.Is(err, errDevice) {
		t.Errorf("Listen: %v", err)
	}
	if err := h.Err(); !errors.Is(err, errDevice) {
		t.Errorf("Err() = %v", err)
	}
	if err := h.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
