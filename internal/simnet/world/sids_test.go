package world

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/simnet"
	"weft/internal/slowtest"
	"weft/stack"
	"weft/topology"
	"weft/topology/graph"
)

var block = netip.MustParsePrefix("fcbb:bbbb::/32")

// graphOf is a computed fabric as data, with its own addresses and an operator's SIDs, of which
// it returns those that switches take packets out at.
func graphOf(t *testing.T, top *topology.Topology) (*graph.Graph, map[netip.Addr]simnet.SID) {
	t.Helper()
	var s graph.Spec
	for n := range top.Nodes() {
		g := graph.Node{Name: n.Name, Tier: int(n.Layer), Addresses: []netip.Addr{n.Addr, topology.Addr6(n.Addr)}}
		switch n.Layer {
		case topology.LayerHost:
			a := top.EmbeddedAddr(n.ID)
			g.Addresses = []netip.Addr{a, topology.Addr6(a)}
		case topology.LayerEdge:
			rack := top.RackOf(n.ID)
			g.Addresses = nil
			g.Prefixes = []netip.Prefix{rack, netip.PrefixFrom(topology.Addr6(rack.Addr()), 96+rack.Bits())}
		default:
			g.SIDs.Node = netip.MustParsePrefix(fmt.Sprintf("fcbb:bbbb:%x::/48", n.ID))
		}
		s.Nodes = append(s.Nodes, g)
	}
	for l := range top.Links() {
		s.Links = append(s.Links, graph.Link{Ends: [2]string{top.Node(l.A).Name, top.Node(l.B).Name}})
	}
	g, err := graph.New(s)
	if err != nil {
		t.Fatal(err)
	}
	sids := make(map[netip.Addr]simnet.SID)
	for n := range top.Nodes() {
		id, _ := g.ByName(n.Name)
		if s := g.Node(id).SIDs; !s.None() {
			sids[s.Decap4.Addr()] = simnet.SID{Switch: n.ID}
			sids[s.Decap6.Addr()] = simnet.SID{Switch: n.ID, Inner6: true}
		}
	}
	return g, sids
}

// sidCounter counts what a host sends to SIDs, and what else.
type sidCounter struct {
	stack.Device
	sids map[netip.Addr]int
	rest int
}

func (w *sidCounter) Write(bufs [][]byte, offset int) (int, error) {
	for _, b := range bufs {
		if p := b[offset:]; p[0]>>4 == 6 && block.Contains(netip.AddrFrom16([16]byte(p[24:40]))) {
			w.sids[netip.AddrFrom16([16]byte(p[24:40]))]++
		} else {
			w.rest++
		}
	}
	return w.Device.Write(bufs, offset)
}

// In a fabric that is data, Hosts reach each other by the SIDs of its switches: data of both
// families and the Hosts' own probes, which prove the carrier and find dead ways.
func TestFlow_bySIDs(t *testing.T) {
	slowtest.Unraced(t)
	for _, name := range []string{"drb", "presto", "luopan"} {
		for _, six := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " IPv6 ", six), func(t *testing.T) {
				top, err := topology.Parse("fat-tree:k=4")
				if err != nil {
					t.Fatal(err)
				}
				g, sids := graphOf(t, top)
				links := tenGigabit
				links.SIDs = sids
				devices := make(map[string]*sidCounter)
				w := newWorld(t, Config{Fabric: top, Links: links, Seed: 1, IPv6: six, Hosts: func(host string, c *stack.Config) {
					view, err := topology.FromGraph(g, c.Address)
					if err != nil {
						t.Fatal(err)
					}
					devices[host] = &sidCounter{Device: c.Device, sids: make(map[netip.Addr]int)}
					c.Topology, c.Device, c.Carrier, c.Policy = view, devices[host], encap.CarrierSRv6, name
					c.Liveness = &stack.Liveness{}
					if c.CarryIPv6 = false; six {
						c.Topology6 = seen(t, g, c.Address6)
					}
				}})
				flows := func() {
					w.Flow("h0.0.2", "h3.1.3", megabytes(4, 1)) // by cores
					w.Flow("h0.1.2", "h0.0.3", megabytes(4, 1)) // by aggregation switches
					run(t, w, time.Minute)
				}
				flows() // plain, until probes prove the carrier
				if err := w.RunUntil(w.Now() + 500*time.Millisecond); err != nil {
					t.Fatal(err)
				}
				for _, d := range devices {
					clear(d.sids)
					d.rest = 0
				}
				flows()
				for host, ways := range map[string]int{"h0.0.2": 4, "h0.1.2": 2} {
					d := devices[host]
					taken := make(map[netip.Prefix]bool)
					packets := 0
					for a, n := range d.sids {
						if sid, ok := sids[a]; !ok || sid.Inner6 && !six {
							t.Errorf("%s: %d packets to %v", host, n, a)
						}
						p, _ := a.Prefix(48)
						taken[p] = true
						packets += n
					}
					if len(taken) < ways || d.rest > packets/10 {
						t.Errorf("%s: %d packets to SIDs of %d switches, want %d; %d others", host, packets, len(taken), ways, d.rest)
					}
				}
				s := w.Network().Stats()
				for _, c := range []simnet.Cause{simnet.NoRoute, simnet.Malformed, simnet.Spoofed, simnet.NotForUs, simnet.NoLabel, simnet.LabelsEnd} {
					if s.Dropped[c] > 0 {
						t.Errorf("%d packets dropped: %v", s.Dropped[c], c)
					}
				}
				// A link fails of which nobody tells the Hosts.
				w.Cut("a3.2", "c1.1")
				flows()
				if err := w.RunUntil(w.Now() + 500*time.Millisecond); err != nil {
					t.Fatal(err)
				}
				lost := w.Network().Stats().Dropped[simnet.LinkDown]
				flows()
				if more := w.Network().Stats().Dropped[simnet.LinkDown] - lost; lost == 0 || more > 20 {
					t.Errorf("%d packets into the hole, and %d once probes had time to find it", lost, more)
				}
			})
		}
	}
}

// A fabric that lacks something for SIDs is refused, by name.
func TestNew_withoutSIDs(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	g, _ := graphOf(t, top)
	text := string(g.Text())
	for want, old := range map[string]string{
		"switch c1.2 has no SIDs":         `, sids: {node: "fcbb:bbbb:21::/48"}`,
		"host h0.0.2 has no IPv6 address": `, "fd77:6566:7400::a00:82"`,
	} {
		if !strings.Contains(text, old) {
			t.Fatalf("no %q in\n%s", old, text)
		}
		without, err := graph.Parse([]byte(strings.Replace(text, old, "", 1)))
		if err != nil {
			t.Fatal(err)
		}
		view, err := topology.FromGraph(without, top.EmbeddedAddr(0))
		if err != nil {
			t.Fatal(err)
		}
		whole, err := topology.FromGraph(g, top.EmbeddedAddr(0))
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, Config{Fabric: top, Hosts: func(_ string, c *stack.Config) { c.Topology, c.Carrier = whole, encap.CarrierSRv6 }})
		if err := w.Host("h0.0.2").SetTopology(view); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("SetTopology: %v, want %q", err, want)
		}
		w = newWorld(t, Config{Fabric: top, Hosts: func(_ string, c *stack.Config) { c.Topology, c.Carrier = view, encap.CarrierSRv6 }})
		w.Host("h0.0.2")
		if err := w.Run(time.Second); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
