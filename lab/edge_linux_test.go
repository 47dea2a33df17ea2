package lab

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/fabric"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// labelWay is the smallest fabric with a spine: the way of labels from one host to
// the other, and the places on it where packets are put in and looked at.
type labelWay struct {
	lab        *Lab
	src, dst   topology.Node
	near, far  topology.Node    // edge switches
	host, core *kerneltest.Wire // senders: the source, and the spine downwards
	to         *kerneltest.Wire // at the destination
	sids       netip.Addr       // from the source
	down       netip.Addr       // from the spine
}

// newLabelWay is on a lab that tests share: its counters go on.
func newLabelWay(t *testing.T) *labelWay {
	t.Helper()
	l := sharedLab(t, Config{Name: kerneltest.LabName(sharedLabels), Topology: kerneltest.Topology(t, "fat-tree:k=2"), SRv6: true})
	top := l.Config.Topology
	w := &labelWay{lab: l, src: kerneltest.Node(t, top, "h0.0.2"), dst: kerneltest.Node(t, top, "h1.0.2"),
		near: kerneltest.Node(t, top, "e0.0"), far: kerneltest.Node(t, top, "e1.0")}
	w.host, w.to = openWire(t, l, w.src.ID, 0), openWire(t, l, w.dst.ID, 0)
	w.core = openWire(t, l, kerneltest.Node(t, top, "3.0").ID, 1)
	labels := top.Paths(w.src.ID, w.dst.ID).Labels(0)
	var err, err2 error
	w.sids, err = encap.SIDs(labels)
	w.down, err2 = encap.SIDs(labels[3:])
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return w
}

func (w *labelWay) outer(dst netip.Addr) ipv6 {
	return ipv6{next: 4, hops: 64, src: topology.Addr6(w.src.Addr), dst: dst}
}

func (w *labelWay) inner() kerneltest.IPv4 {
	return kerneltest.IPv4{ID: 0x1234, Frag: 0x4000, TTL: 17, Protocol: 253, Src: w.src.Addr, Dst: w.dst.Addr}
}

func (w *labelWay) edge(t *testing.T, n topology.Node) fabric.EdgeCounters {
	t.Helper()
	w.lab.mu.Lock()
	defer w.lab.mu.Unlock()
	node, err := w.lab.node(n.ID)
	if err != nil {
		t.Fatal(err)
	}
	var c *fabric.EdgeCounters
	err = w.lab.Do(n.ID, func() error {
		c, err = fabric.ReadEdgeCounters(node.Handle, node.links)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if c == nil {
		t.Skip("this kernel has no tc eBPF")
	}
	return *c
}

// A mark made at a spine, or on the way up to one that takes the labels off, or one
// of any other combination, arrives inside as encap says; the packet is the same
// otherwise.
func TestEdge_marksArriveInside(t *testing.T) {
	w := newLabelWay(t)
	path := w.lab.Config.Topology.Paths(w.src.ID, w.dst.ID).Path(0).Hops
	spine := w.lab.Config.Topology.Node(path[3])
	payload := bytes.Repeat([]byte("weft!"), 200)
	for _, c := range []struct {
		from *kerneltest.Wire
		sids netip.Addr
		end  topology.Node // who takes the labels off
		hops byte          // from there to the destination
	}{
		{w.core, w.down, w.far, 1},
		{openWire(t, w.lab, path[2], 1), netip.MustParseAddr("5f00:fe00::"), spine, 3},
	} {
		for outer := range byte(4) {
			for inner := range byte(4) {
				before := w.edge(t, c.end)
				h, ip := w.outer(c.sids), w.inner()
				h.class, ip.TOS = 0x20|outer, 0x48|inner
				packet := h.bytes(ip.Bytes(payload))
				c.from.SendLabelled(t, packet)
				want, err := encap.DecapsulateSRv6(bytes.Clone(packet))
				if errors.Is(err, encap.ErrECN) {
					before.ECN++
					marker := w.inner()
					marker.ID = 0x7777
					c.from.SendLabelled(t, w.outer(c.sids).bytes(marker.Bytes(nil)))
					marker.TTL -= c.hops
					want = marker.Bytes(nil)
				} else if err != nil {
					t.Fatal(err)
				} else {
					ip.TOS, ip.TTL = want[1], ip.TTL-c.hops
					want = ip.Bytes(payload)
				}
				before.Decapsulated++
				if got := w.to.Receive(t); !bytes.Equal(got, want) {
					t.Errorf("%s, outer ECN %d, inner %d: got\n%swant\n%s", c.end.Name, outer, inner, hex.Dump(got[:20]), hex.Dump(want[:20]))
				}
				if got := w.edge(t, c.end); got != before {
					t.Errorf("%s, outer ECN %d, inner %d: counters %+v, want %+v", c.end.Name, outer, inner, got, before)
				}
			}
		}
	}
}

func forged(c *fabric.EdgeCounters) *uint64        { return &c.Forged }
func nestedEdge(c *fabric.EdgeCounters) *uint64    { return &c.Nested }
func malformedEdge(c *fabric.EdgeCounters) *uint64 { return &c.Malformed }

// What a host may not send with labels does not come through its port.
func TestEdge_hostsSendTheirOwn(t *testing.T) {
	w := newLabelWay(t)
	payload := []byte("payload of the inner packet")
	other := w.near.Addr.Next().Next() // of the same rack
	far6 := topology.Addr6(w.dst.Addr)
	const vlan, mpls = 0x8100, 0x8847
	for _, c := range []struct {
		name     string
		protocol uint16
		cause    func(*fabric.EdgeCounters) *uint64
		packet   func(o ipv6, i kerneltest.IPv4) []byte
	}{
		{"another's name", 0, forged, func(o ipv6, i kerneltest.IPv4) []byte {
			o.src, i.Src = far6, w.dst.Addr
			return o.bytes(i.Bytes(payload))
		}},
		{"a neighbour's name", 0, forged, func(o ipv6, i kerneltest.IPv4) []byte {
			o.src, i.Src = topology.Addr6(other), other
			return o.bytes(i.Bytes(payload))
		}},
		{"another inside", 0, forged, func(o ipv6, i kerneltest.IPv4) []byte { i.Src = w.dst.Addr; return o.bytes(i.Bytes(payload)) }},
		{"another outside", 0, forged, func(o ipv6, i kerneltest.IPv4) []byte { o.src = far6; return o.bytes(i.Bytes(payload)) }},
		{"an address outside of the fabric's", 0, forged, func(o ipv6, i kerneltest.IPv4) []byte {
			o.src = topology.LinkLocal6(w.src.Addr)
			return o.bytes(i.Bytes(payload))
		}},
		{"a routing header", 0, forged, func(o ipv6, i kerneltest.IPv4) []byte { o.next = 43; return o.bytes(i.Bytes(payload)) }},
		{"no IPv4 inside", 0, forged, func(o ipv6, _ kerneltest.IPv4) []byte { o.next = 58; return o.bytes(payload) }},
		{"hop limit", 0, forged, func(o ipv6, i kerneltest.IPv4) []byte { o.hops = 65; return o.bytes(i.Bytes(payload)) }},
		{"for the edge switch at once", 0, forged, func(o ipv6, i kerneltest.IPv4) []byte {
			o.dst, i.Src = netip.MustParseAddr("5f00:fe00::"), w.dst.Addr
			return o.bytes(i.Bytes(payload))
		}},
		{"inner missing", 0, malformedEdge, func(o ipv6, _ kerneltest.IPv4) []byte { return o.bytes(nil) }},
		{"inner header length", 0, malformedEdge, func(o ipv6, i kerneltest.IPv4) []byte { p := i.Bytes(payload); p[0] = 0x44; return o.bytes(p) }},
		{"tagged twice", vlan, forged, func(o ipv6, i kerneltest.IPv4) []byte {
			return append([]byte{0, 0, vlan >> 8, vlan & 255, 0, 0, 0x86, 0xdd}, o.bytes(i.Bytes(payload))...)
		}},
		{"MPLS, another's name", mpls, forged, func(_ ipv6, i kerneltest.IPv4) []byte {
			i.Src = w.dst.Addr
			return append([]byte{0, 1, 0, 64, 0, 1, 1, 64}, i.Bytes(payload)...)
		}},
		{"MPLS, TTL", mpls, forged, func(_ ipv6, i kerneltest.IPv4) []byte { return append([]byte{0, 1, 1, 65}, i.Bytes(payload)...) }},
		{"MPLS without end", mpls, malformedEdge, func(ipv6, kerneltest.IPv4) []byte { return bytes.Repeat([]byte{0, 1, 0, 64}, 20) }},
		{"MPLS without a packet", mpls, malformedEdge, func(ipv6, kerneltest.IPv4) []byte { return []byte{0, 1, 1, 64, 0x45} }},
	} {
		want := w.edge(t, w.near)
		if c.protocol == 0 {
			c.protocol = unix.ETH_P_IPV6
		}
		w.host.SendFrame(t, c.protocol, c.packet(w.outer(w.sids), w.inner()))
		*c.cause(&want)++
		w.arrivesFirst(t, c.name)
		if got := w.edge(t, w.near); got != want {
			t.Errorf("%s: counters %+v, want %+v", c.name, got, want)
		}
	}
	// The embedded stack is the host, too.
	own := w.lab.Config.Topology.EmbeddedAddr(w.src.ID)
	o, i := w.outer(w.sids), w.inner()
	o.src, i.Src = topology.Addr6(own), own
	w.host.SendLabelled(t, o.bytes(i.Bytes(payload)))
	if got := w.to.Receive(t); !bytes.Equal(got[12:16], own.AsSlice()) {
		t.Errorf("of the embedded stack arrived:\n%s", hex.Dump(got))
	}
}

// arrivesFirst sends a good packet from the source; nothing must come before it.
func (w *labelWay) arrivesFirst(t *testing.T, name string) {
	t.Helper()
	marker := w.inner()
	marker.ID = 0x7777
	w.host.SendLabelled(t, w.outer(w.sids).bytes(marker.Bytes(nil)))
	for {
		got := w.to.Receive(t)
		if binary.BigEndian.Uint16(got[4:]) == marker.ID {
			return
		}
		t.Errorf("%s: arrived:\n%s", name, hex.Dump(got))
	}
}

// What comes from the fabric is looked at again where the outer header goes.
func TestEdge_refusesInside(t *testing.T) {
	w := newLabelWay(t)
	w.edge(t, w.far)
	payload := []byte("payload of the inner packet")
	behind := netip.MustParseAddr("5f00:1fe:100::") // something behind "decapsulate"
	for _, c := range []struct {
		name   string
		cause  func(*fabric.EdgeCounters) *uint64 // nil: the routes refuse
		packet func(o ipv6, i kerneltest.IPv4) []byte
	}{
		{"other inner source", forged, func(o ipv6, i kerneltest.IPv4) []byte { i.Src = w.dst.Addr; return o.bytes(i.Bytes(payload)) }},
		{"nested", nestedEdge, func(o ipv6, i kerneltest.IPv4) []byte {
			j := i
			j.Protocol = 4
			return o.bytes(j.Bytes(i.Bytes(payload)))
		}},
		{"no IPv4 inside", malformedEdge, func(o ipv6, _ kerneltest.IPv4) []byte { o.next = 58; return o.bytes(payload) }},
		{"inner longer than outer", malformedEdge, func(o ipv6, i kerneltest.IPv4) []byte {
			p := i.Bytes(payload)
			binary.BigEndian.PutUint16(p[2:], uint16(len(p)+1))
			return o.bytes(p)
		}},
		{"more behind", nil, func(o ipv6, i kerneltest.IPv4) []byte { o.dst = behind; return o.bytes(i.Bytes(payload)) }},
	} {
		want, labels := w.edge(t, w.far), labelCounters(t, w.lab, w.far)
		w.core.SendLabelled(t, c.packet(w.outer(w.down), w.inner()))
		if c.cause != nil {
			*c.cause(&want)++
		} else {
			labels.Unknown++
		}
		w.arrivesFirst(t, c.name)
		want.Decapsulated++
		labels.Decapsulated++
		if got := w.edge(t, w.far); got != want {
			t.Errorf("%s: counters %+v, want %+v", c.name, got, want)
		}
		if got := labelCounters(t, w.lab, w.far); got != labels {
			t.Errorf("%s: counters of labels %+v, want %+v", c.name, got, labels)
		}
	}
}

// The kernel's TCP over labels: super-segments stay whole from host to host, whether
// the destination's edge switch takes the labels off or the spine.
func TestLabels_superSegmentsStayWhole(t *testing.T) {
	for _, c := range []struct {
		name   string
		labels func(topology.PathSet, int) []int
		passed func(fabric.LabelCounters) uint64 // of the spine's
	}{
		{"all labels", topology.PathSet.Labels, func(c fabric.LabelCounters) uint64 { return c.Popped }},
		{"choices", topology.PathSet.Choices, func(c fabric.LabelCounters) uint64 { return c.Decapsulated }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := upLabelLab(t, Config{Topology: kerneltest.Topology(t, "leaf-spine:leaves=2,spines=2,hosts=1"), Unlimited: true})
			top := l.Config.Topology
			hosts := kerneltest.Hosts(top)
			for i, from := range hosts {
				to := hosts[1-i]
				sids, err := encap.SIDs(c.labels(top.Paths(from.ID, to.ID), i))
				if err != nil {
					t.Fatal(err)
				}
				kerneltest.Shell(t, l.Namespace(from.ID), "ip route replace "+to.Addr.String()+"/32 encap seg6 mode encap.red segs "+sids.String()+" dev p0 mtu 1460")
			}
			src, dst := hosts[0], hosts[1]
			spine := top.Paths(src.ID, dst.ID).Bounce(0)
			at := openCapture(t, l, spine, 0)
			end := openCapture(t, l, dst.ID, 0)
			defer transfer(t, l, src, dst, tcp{})()
			for _, c := range []*capture{at, end} {
				longest := 0
				kerneltest.Within(t, kerneltest.Patience, "a packet of 20,000 bytes passes", func() bool {
					for p := c.read(t, 0); p != nil; p = c.read(t, 0) {
						longest = max(longest, c.length)
					}
					return longest >= 20000
				})
			}
			// Unknown counts the kernel's own packets without a route, too. A label that the spine did not
			// know would lose every packet.
			if got := labelCounters(t, l, top.Node(spine)); c.passed(got) == 0 || got.Ended > 0 || got.Unknown > 3 {
				t.Errorf("counters of the spine: %+v", got)
			}
		})
	}
}
