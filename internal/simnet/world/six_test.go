package world

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"weft/internal/slowtest"
	"weft/stack"
	"weft/topology"
	"weft/topology/graph"
)

// seen is a graph as one of its hosts' addresses sees it.
func seen(t *testing.T, g *graph.Graph, self netip.Addr) *topology.Topology {
	t.Helper()
	v, err := topology.FromGraph(g, self)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// outers counts a host's packets by where their outer headers lead, and may lose those of one
// family, as where switches do not take them off.
type outers struct {
	stack.Device
	to    map[netip.Addr]int
	plain [2]int // of IPv4, IPv6
	lost  byte   // the version whose outer headers nobody takes off
}

func (d *outers) Write(bufs [][]byte, offset int) (int, error) {
	for i, b := range bufs {
		var to netip.Addr
		p := b[offset:]
		six := p[0]>>4 == 6
		switch {
		case six && (p[6] == 41 || p[6] == 4):
			to = netip.AddrFrom16([16]byte(p[24:40]))
		case !six && (p[9] == 4 || p[9] == 41):
			to = netip.AddrFrom4([4]byte(p[16:20]))
		case six:
			d.plain[1]++
		default:
			d.plain[0]++
		}
		if to.IsValid() {
			if d.to[to]++; p[0]>>4 == d.lost {
				continue
			}
		}
		if n, err := d.Device.Write(bufs[i:i+1], offset); n != 1 || err != nil {
			return i, err
		}
	}
	return len(bufs), nil
}

func (d *outers) begin() {
	clear(d.to)
	d.plain = [2]int{}
}

// sixWorld is a fat-tree that is data with addresses of both families. Connections are IPv6.
func sixWorld(t *testing.T, seed uint64, policy string, devices map[string]*outers) (*World, *topology.Topology) {
	t.Helper()
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	g, _ := graphOf(t, top)
	links := tenGigabit
	if race {
		links.RateBits = 2e8
	}
	return newWorld(t, Config{Fabric: top, Links: links, Seed: seed, IPv6: true, Hosts: func(host string, c *stack.Config) {
		devices[host] = &outers{Device: c.Device, to: make(map[netip.Addr]int)}
		c.Topology, c.Topology6, c.CarryIPv6 = seen(t, g, c.Address), seen(t, g, c.Address6), false
		c.Device, c.Policy, c.Liveness = devices[host], policy, &stack.Liveness{}
	}}), top
}

// Probes over IPv6 prove IPv6, and over IPv4 IPv4. What is not proved goes plain, and data of
// the other family goes on by its paths.
func TestSix_eachFamilyIsProvedAlone(t *testing.T) {
	for _, policy := range []string{"drb", "presto"} {
		if testing.Short() && policy == "drb" {
			continue
		}
		t.Run(policy, func(t *testing.T) {
			const seed = 3
			devices := make(map[string]*outers)
			w, top := sixWorld(t, seed, policy, devices)
			flow := func(what string, cores int, plain bool) {
				t.Helper()
				d := devices["h0.0.2"]
				d.begin()
				size := megabytes(4, 1)
				packets := int(size / 1400)
				w.Flow("h0.0.2", "h3.1.3", size)
				run(t, w, w.Now()+time.Minute)
				data, used := 0, 0
				least, most := 1<<30, 0
				for r := range 4 {
					core, _ := top.Lookup("3." + string(rune('0'+r)))
					n := d.to[topology.Addr6(core.Addr)]
					if data += n; n > packets/10 {
						used++
					}
					least, most = min(least, n), max(most, n)
				}
				if used != cores || plain && d.plain[1] < packets || !plain && d.plain[1] > 0 {
					t.Errorf("seed %d, %s: %d packets of data by %d cores, want %d, %d plain", seed, what, data, used, cores, d.plain[1])
				}
				if policy == "drb" && cores == 4 && most-least > most/20 {
					t.Errorf("seed %d, %s: the cores have from %d to %d packets", seed, what, least, most)
				}
			}
			proved := func(what string, four, six bool) {
				t.Helper()
				for end := w.Now() + 10*time.Second; ; {
					h := w.Host("h0.0.2")
					rack, _ := h.Topology().RackAt(top.EmbeddedAddr(topology.NodeID(top.NumHosts() - 1)))
					if h.Carriage().Plain(rack) == !four && h.Carriage6().Plain(rack) == !six {
						return
					}
					if w.Now() > end {
						t.Fatalf("seed %d, %s: IPv4 is plain: %t, IPv6: %t: %s", seed, what, h.Carriage().Plain(rack), h.Carriage6().Plain(rack), h.Carriage6().Why(rack))
					}
					if err := w.RunUntil(w.Now() + time.Millisecond); err != nil {
						t.Fatal(err)
					}
				}
			}
			settle := func() { // paths that were suspected come back one by one
				t.Helper()
				if err := w.RunUntil(w.Now() + 2*time.Second); err != nil {
					t.Fatal(err)
				}
			}
			both := func(version byte) {
				for _, d := range devices {
					d.lost = version
				}
			}
			w.Host("h0.0.2")
			w.Host("h3.1.3")
			if h := w.Host("h0.0.2"); !h.Carriage6().Plain(2) || !h.Carriage().Plain(2) {
				t.Error("before the first probe IPv6 is carried")
			}
			both(6)
			proved("switches take off no outer headers of IPv6", true, false)
			settle()
			flow("switches take off no outer headers of IPv6", 0, true)
			both(0)
			proved("they do", true, true)
			settle()
			flow("they do", 4, false)
			both(4)
			proved("switches take off none of IPv4", false, true)
			settle()
			flow("switches take off none of IPv4", 4, false)
			both(6)
			proved("now only those of IPv4", true, false)
			flow("now only those of IPv4", 0, true)
			if down := w.Host("h0.0.2").Topology().Down(); len(down) > 0 {
				t.Errorf("seed %d: of IPv4 %v are out of use", seed, down)
			}
			if s := w.Host("h0.0.2").Stats().Liveness; s.Forged+s.IPv6.Forged > 0 || s.IPv6.Watcher.Answered == 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A switch dies without a word: IPv6 leaves it, as IPv4 does, by probes of its own.
func TestSix_leavesADeadSwitch(t *testing.T) {
	slowtest.Unraced(t)
	const seed = 4
	devices := make(map[string]*outers)
	w, _ := sixWorld(t, seed, "drb", devices)
	w.Flow("h0.0.2", "h3.1.3", Endless)
	if err := w.RunUntil(300 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	h := w.Host("h0.0.2")
	if down := h.Topology6().Down(); len(down) > 0 {
		t.Fatalf("before anything fails %v are out of use", down)
	}
	w.Fail("c1.1")
	at := w.Now()
	for len(h.Topology6().Down()) == 0 {
		if err := w.RunUntil(w.Now() + time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if w.Now()-at > 200*time.Millisecond {
			t.Fatalf("seed %d: after %v it is in use", seed, w.Now()-at)
		}
	}
	t.Logf("after %v", w.Now()-at)
	for _, l := range h.Topology6().Down() {
		if k := h.Topology6().Link(l); h.Topology6().Node(k.B).Name != "c1.1" {
			t.Errorf("%s is out of use", h.Topology6().LinkName(l))
		}
	}
	w.Heal("c1.1")
	for len(h.Topology6().Down()) > 0 {
		if err := w.RunUntil(w.Now() + 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if w.Now()-at > 10*time.Second {
			t.Fatal("it is not used again")
		}
	}
}

// What switches say of one family's links changes nothing for the other.
func TestSix_newsOfOneFamily(t *testing.T) {
	w, top := sixWorld(t, 5, "drb", make(map[string]*outers))
	h := w.Host("h0.0.2")
	g, _ := graphOf(t, top)
	six := h.Topology6()
	a, _ := six.Lookup("e3.1")
	b, _ := six.Lookup("c1.1")
	var cut topology.LinkID
	for l := range six.Links() {
		if l.A == a.ID && l.B == b.ID {
			cut = l.ID
		}
	}
	if err := h.SetTopology6(six.Without(cut)); err != nil {
		t.Fatal(err)
	}
	if n, m := len(h.Topology().Down()), len(h.Topology6().Down()); n != 0 || m != 1 {
		t.Errorf("%d links of IPv4 are down, %d of IPv6", n, m)
	}
	if err := h.SetTopology(six); err == nil {
		t.Error("SetTopology takes what IPv6 sees")
	}
	if err := h.SetTopology6(seen(t, g, h.Address())); err == nil {
		t.Error("SetTopology6 takes what IPv4 sees")
	}
	// Another fabric begins anew: it has to be proved.
	other, err := graph.Parse(bytes.Replace(g.Text(), []byte("  - {ends: [e3.1, a3.2]}\n"), nil, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.SetTopology6(seen(t, other, h.Address6())); err != nil {
		t.Error(err)
	}
	if h.Topology6().String() == six.String() || !h.Carriage6().Plain(2) {
		t.Error("the other fabric is not begun anew")
	}
}
