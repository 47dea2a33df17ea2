package lab

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"weft/encap"
	"weft/fabric"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
)

// upLabelLab brings up a lab that forwards by labels, where the kernel can.
func upLabelLab(t testing.TB, cfg Config) *Lab {
	t.Helper()
	kerneltest.NeedRoot(t)
	cfg.SRv6 = true
	return upLab(t, cfg)
}

// ipv6 is a header for tests.
type ipv6 struct {
	class, next, hops byte
	src, dst          netip.Addr
}

func (h ipv6) bytes(payload []byte) []byte {
	b := make([]byte, 40, 40+len(payload))
	b[0], b[1] = 0x60|h.class>>4, h.class<<4
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	b[6], b[7] = h.next, h.hops
	copy(b[8:], h.src.AsSlice())
	copy(b[24:], h.dst.AsSlice())
	return append(b, payload...)
}

// By every path of every kind of fabric a packet comes to the switches of that
// path and to no other, one label less at each, and plain behind the last, be that
// the destination's edge switch or where routes do the rest.
func TestLabels_everyPath(t *testing.T) {
	slowtest.System(t)
	for _, spec := range kerneltest.LabelFabrics[:3] {
		t.Run(spec, func(t *testing.T) {
			l := upLabelLab(t, Config{Topology: kerneltest.Topology(t, spec)})
			top := l.Config.Topology
			wires := make(map[topology.NodeID]*kerneltest.Wire)
			for h := range top.Hosts() {
				wires[h.ID] = openWire(t, l, h.ID, 0)
			}
			s := openCaptures(t, l)
			kerneltest.EachPath(t, top, func(src, dst topology.Node, set topology.PathSet, n int) {
				for _, labels := range [][]int{set.Labels(n), set.Choices(n)} {
					addr, err := encap.SIDs(labels)
					if err != nil {
						t.Fatal(err)
					}
					payload := fmt.Appendf(nil, "from %s to %s by %d labels of path %d;", src.Name, dst.Name, len(labels), n)
					inner := kerneltest.IPv4{ID: 7, Frag: 0x4000, TTL: 64, Protocol: 253, Src: src.Addr, Dst: dst.Addr}
					outer := ipv6{next: 4, hops: 64, src: topology.Addr6(src.Addr), dst: addr}
					wires[src.ID].SendLabelled(t, outer.bytes(inner.Bytes(payload)))
					for !bytes.HasSuffix(wires[dst.ID].Receive(t), payload) {
					}
					seen := s.arrivals(t, payload)
					hops := set.Path(n).Hops[1:]
					for i, id := range hops {
						if i > len(labels) {
							// Who takes the labels off routes the inner packet, and is its first hop.
							inner.TTL--
							wantArrival(t, top.Node(id), seen[id], inner.Bytes(nil), len(payload))
							continue
						}
						want := outer
						want.hops -= byte(i)
						want.dst = addr
						wantArrival(t, top.Node(id), seen[id], want.bytes(inner.Bytes(nil)), len(payload))
						b := addr.As16()
						encap.PopSID(&b)
						addr = netip.AddrFrom16(b)
					}
					if len(seen) != len(hops) {
						t.Errorf("%s was seen at %d nodes, want %d", payload, len(seen), len(hops))
					}
				}
			})
		})
	}
}

// wantArrival checks what came to a node: headers, made for no payload.
func wantArrival(t *testing.T, n topology.Node, got [][]byte, want []byte, payload int) {
	t.Helper()
	if len(got) != 1 {
		t.Errorf("came %d times to %s", len(got), n.Name)
		return
	}
	ip := want
	if want[0]>>4 == 6 {
		binary.BigEndian.PutUint16(want[4:], uint16(len(want)-40+payload))
		ip = want[40:]
	}
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+payload))
	ip[10], ip[11] = 0, 0
	binary.BigEndian.PutUint16(ip[10:], ^kerneltest.OnesSum(ip))
	if !bytes.Equal(got[0], want) {
		t.Errorf("at %s:\n%x, want\n%x", n.Name, got[0], want)
	}
}

// What the kernel makes of addresses in the block, good ones and bad, is what
// encap says of them.
func TestLabels_kernelPopsAsEncapDoes(t *testing.T) {
	slowtest.System(t)
	l := upLabelLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=4")})
	top := l.Config.Topology
	agg := kerneltest.Node(t, top, "a0.2")
	ports := top.Ports(agg.ID)
	var far []*kerneltest.Wire
	var out []*capture
	for _, p := range ports {
		far = append(far, openWire(t, l, p.Peer, p.PeerPort))
		out = append(out, openCapture(t, l, p.Peer, p.PeerPort))
	}
	stacks, seed := randomStacks(len(ports))
	for i, stack := range stacks {
		before := labelCounters(t, l, agg)
		src := kerneltest.Node(t, top, "h0.0.2").Addr
		inner := kerneltest.IPv4{ID: uint16(i), Frag: 0x4000, TTL: 64, Protocol: 253, Src: src, Dst: kerneltest.Node(t, top, "h1.0.2").Addr}
		// The next switch is to be the last, or it might send the packet back.
		packet := ipv6{next: 4, hops: 2, src: topology.Addr6(src), dst: netip.AddrFrom16(stack)}
		from := far[i%len(far)]
		from.SendLabelled(t, packet.bytes(inner.Bytes(nil)))

		want := before
		popped := stack
		sid, ok := encap.PopSID(&popped)
		switch {
		case sid == 0 || int(sid) > len(ports):
			want.Unknown++
		case !ok:
			want.Ended++
		default:
			want.Popped++
			packet.dst, packet.hops = netip.AddrFrom16(popped), 1
			if got := out[sid-1].read(t, waitCount); !bytes.Equal(got, packet.bytes(inner.Bytes(nil))) {
				t.Errorf("seed %d: %x out of port %d:\n%x, want\n%x", seed, stack, sid-1, got, packet.bytes(inner.Bytes(nil)))
			}
		}
		kerneltest.Within(t, waitCount, fmt.Sprintf("seed %d, %x: counters %+v become %+v", seed, stack, before, want), func() bool {
			return labelCounters(t, l, agg) == want
		})
	}
	src := kerneltest.Node(t, top, "h0.0.2").Addr
	expired := ipv6{next: 4, hops: 1, src: topology.Addr6(src), dst: netip.MustParseAddr("5f00:1fe::")}
	before := labelCounters(t, l, agg)
	far[0].SendLabelled(t, expired.bytes(kerneltest.IPv4{TTL: 64, Protocol: 253, Src: src, Dst: src}.Bytes(nil)))
	kerneltest.Within(t, waitCount, "an expired hop limit is counted", func() bool {
		return labelCounters(t, l, agg).Expired == before.Expired+1
	})
}

func labelCounters(t *testing.T, l *Lab, n topology.Node) fabric.LabelCounters {
	t.Helper()
	var c *fabric.LabelCounters
	err := l.Do(n.ID, func() (err error) {
		c, err = fabric.ReadLabelCounters()
		return err
	})
	if err != nil || c == nil {
		t.Fatalf("counters of %s: %v, %v", n.Name, c, err)
	}
	return *c
}
