package lab

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
)

// taps see what comes in at every port of a lab.
type taps struct {
	lab *Lab
	fds map[topology.NodeID][]int
}

func openTaps(t *testing.T, l *Lab) *taps {
	t.Helper()
	s := &taps{l, make(map[topology.NodeID][]int)}
	for n := range l.Config.nodes() {
		for _, p := range l.Config.ports(n.ID) {
			s.fds[n.ID] = append(s.fds[n.ID], openWire(t, l, n.ID, p.Index).FD)
		}
	}
	return s
}

// arrivals returns the nodes at which src's packet with the payload came in,
// as often as it did, and the headers in front of it, without waiting. What
// the destination answers, that it knows no such protocol, quotes the payload.
func (s *taps) arrivals(t *testing.T, src topology.Node, payload []byte) map[topology.NodeID][][]byte {
	t.Helper()
	seen := make(map[topology.NodeID][][]byte)
	b := make([]byte, 2048)
	for id, fds := range s.fds {
		for _, fd := range fds {
			for {
				n, from, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
				if err == unix.EAGAIN {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				header, ok := bytes.CutSuffix(b[:n], payload)
				ok = ok && bytes.Equal(header[kernel.EthernetHeader+12:][:4], src.Addr.AsSlice())
				if ok && from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING {
					seen[id] = append(seen[id], bytes.Clone(header[kernel.EthernetHeader:]))
				}
			}
		}
	}
	return seen
}

// theorem3 is the path of a packet that bounces at virtual spine 3.r of a VL2 fabric, or at
// aggregation switch r within its group, as in DRB. It goes up by the aggregation switch
// with the virtual spine's group number, and down by the one with the same number in the
// destination's group.
func theorem3(t *testing.T, top *topology.Topology, d1 int, src, dst topology.Node, r int, within bool) []string {
	t.Helper()
	rack := func(h topology.Node) int { a := h.Addr.As4(); return int(a[1])<<8 | int(a[2]) }
	racksPerGroup := d1 / 2
	edge := func(h topology.Node) string {
		return kerneltest.Node(t, top, fmt.Sprintf("10.%d.%d.1", rack(h)>>8, rack(h)&255)).Name
	}
	agg := func(h topology.Node, number int) string {
		const d0 = 2
		n := rack(h)/racksPerGroup*d0 + number
		return kerneltest.Node(t, top, fmt.Sprintf("10.254.%d.1", n)).Name
	}
	if within {
		return []string{edge(src), agg(src, r), edge(dst), dst.Name}
	}
	spinesPerGroup := d1 / 2
	group := r / spinesPerGroup
	spine := kerneltest.Node(t, top, fmt.Sprintf("3.%d", r)).Name
	return []string{edge(src), agg(src, group), spine, agg(dst, group), edge(dst), dst.Name}
}

// Through every virtual spine, and through the aggregation switches between
// hosts of one group, packets take exactly the one path that they should.
func TestVL2_pathsAreTheorem3s(t *testing.T) {
	slowtest.System(t)
	const d1 = 4
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "vl2:d0=2,d1=4,d2=4,hosts=2")})
	top := l.Config.Topology
	wires := make(map[topology.NodeID]*kerneltest.Wire)
	for h := range top.Hosts() {
		wires[h.ID] = openWire(t, l, h.ID, 0)
	}
	s := openTaps(t, l)
	spines := make(map[string]int) // packets through virtual spines
	for src := range top.Hosts() {
		for dst := range top.Hosts() {
			paths := top.Paths(src.ID, dst.ID)
			for _, n := range paths.Live {
				within := len(paths.Bases) == 1
				want := theorem3(t, top, d1, src, dst, n, within)
				payload := fmt.Appendf(nil, "from %s to %s by path %d;", src.Name, dst.Name, n)
				inner := kerneltest.IPv4{ID: 7, Frag: 0x4000, TTL: 64, Protocol: 253, Src: src.Addr, Dst: dst.Addr}
				outer := kerneltest.IPv4{ID: 7, Frag: 0x4000, TTL: 64, Protocol: 4, Src: src.Addr, Dst: paths.Addr(n)}
				wires[src.ID].Send(t, outer.Bytes(inner.Bytes(payload)))
				for !bytes.HasSuffix(wires[dst.ID].Receive(t), payload) {
				}
				bounce := slices.Index(want, top.Node(paths.Bounce(n)).Name)
				wantArrivals(t, top, s.arrivals(t, src, payload), want, bounce, string(payload))
				if !within {
					spines[paths.Addr(n).String()]++
				}
			}
		}
	}
	if len(spines) != 4 {
		t.Errorf("%d virtual spines were used, want 4: %v", len(spines), spines)
	}
}

// wantArrivals checks that a packet came once to each node of its way and to
// no other, with two headers up to the bounce and with one behind.
func wantArrivals(t *testing.T, top *topology.Topology, seen map[topology.NodeID][][]byte, way []string, bounce int, what string) {
	t.Helper()
	for id, headers := range seen {
		i := slices.Index(way, top.Node(id).Name)
		if i < 0 || len(headers) != 1 {
			t.Errorf("%s came %d times to %s; its way is %v", what, len(headers), top.Node(id).Name, way)
			continue
		}
		want := 20
		if i <= bounce {
			want = 40
		}
		if got := len(headers[0]); got != want {
			t.Errorf("%s: headers of %d bytes at %s, want %d", what, got, top.Node(id).Name, want)
		}
	}
	if len(seen) != len(way) {
		t.Errorf("%s was seen at %d nodes; its way is %v", what, len(seen), way)
	}
}

// What is not encapsulated gets everywhere by the switches' own ECMP.
func TestLab_allPairsReachInEveryKind(t *testing.T) {
	slowtest.System(t)
	for _, spec := range []string{"vl2:d0=2,d1=4,d2=4,hosts=2", "leaf-spine:leaves=3,spines=2,hosts=2", "fat-tree:k=4,hosts=1"} {
		t.Run(spec, func(t *testing.T) {
			l := upLab(t, Config{Topology: kerneltest.Topology(t, spec)})
			wantAllPairsReach(t, l)
			wantAsBuilt(t, l)
		})
	}
}

func TestLeafSpine_bouncesAtEverySpine(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "leaf-spine:leaves=3,spines=4,hosts=1")})
	top := l.Config.Topology
	s := openTaps(t, l)
	src, dst := top.Node(0), top.Node(2)
	from, to := openWire(t, l, src.ID, 0), openWire(t, l, dst.ID, 0)
	paths := top.Paths(src.ID, dst.ID)
	if len(paths.Live) != 4 {
		t.Fatalf("%d paths, want 4", len(paths.Live))
	}
	for _, n := range paths.Live {
		payload := fmt.Appendf(nil, "by path %d;", n)
		inner := kerneltest.IPv4{ID: 7, Frag: 0x4000, TTL: 64, Protocol: 253, Src: src.Addr, Dst: dst.Addr}
		outer := kerneltest.IPv4{ID: 7, Frag: 0x4000, TTL: 64, Protocol: 4, Src: src.Addr, Dst: paths.Addr(n)}
		from.Send(t, outer.Bytes(inner.Bytes(payload)))
		for !bytes.HasSuffix(to.Receive(t), payload) {
		}
		way := []string{top.Node(top.EdgeOf(src.ID)).Name, top.Node(paths.Bounce(n)).Name, top.Node(top.EdgeOf(dst.ID)).Name, dst.Name}
		wantArrivals(t, top, s.arrivals(t, src, payload), way, 1, string(payload))
	}
}
