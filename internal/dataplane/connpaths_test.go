package dataplane

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"weft/flowcell"
	"weft/internal/clock"
)

// Each connection has its own counts by bouncing switch, as a map of all has them. Above the bound
// they go together, and nothing is lost. A SYN begins anew, and what is not TCP does not count.
func TestConnPaths(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		e := &Egress{seed: seed, clock: clock.Or(nil)}
		e.CountConnections()
		var vias []*pathOut
		for i := range MaxConnPaths + 4 {
			vias = append(vias, &pathOut{bounce: netip.AddrFrom4([4]byte{10, 9, 0, byte(40 - i)})})
		}
		type count struct{ packets, bytes uint64 }
		want := map[flowcell.FiveTuple]map[string]count{}
		seen := map[flowcell.FiveTuple][]string{}
		for range 3000 {
			pkt := flowcell.Packet{Flow: flowcell.FiveTuple{SrcPort: uint16(r.IntN(5)), Proto: flowcell.ProtoTCP}}
			if r.IntN(500) == 0 {
				pkt.Flags = flowcell.FlagSYN
			}
			via := vias[r.IntN(len(vias))]
			if r.IntN(10) == 0 {
				via = nil
			}
			packets, bytes := uint64(1+r.IntN(3)), uint64(r.IntN(3000))
			if r.IntN(20) == 0 {
				pkt.Flow.Proto = flowcell.ProtoUDP
				e.conns.count(&pkt, via, packets, bytes, 0)
				continue
			}
			e.conns.count(&pkt, via, packets, bytes, 0)
			if pkt.Flags != 0 || want[pkt.Flow] == nil {
				want[pkt.Flow], seen[pkt.Flow] = map[string]count{}, nil
			}
			by := "rest"
			if via != nil && (slices.Contains(seen[pkt.Flow], via.bounce.String()) || len(seen[pkt.Flow]) < MaxConnPaths) {
				if by = via.bounce.String(); !slices.Contains(seen[pkt.Flow], by) {
					seen[pkt.Flow] = append(seen[pkt.Flow], by)
				}
			}
			c := want[pkt.Flow][by]
			want[pkt.Flow][by] = count{c.packets + packets, c.bytes + bytes}
		}
		for flow, all := range want {
			paths, rest := e.ConnectionPaths(flow)
			got := map[string]count{}
			for i, p := range paths {
				got[p.Bounce.String()] = count{p.Packets, p.Bytes}
				if i > 0 && !paths[i-1].Bounce.Less(p.Bounce) {
					t.Errorf("seed %d: not in order: %v", seed, paths)
				}
			}
			if rest != (PathStats{}) {
				got["rest"] = count{rest.Packets, rest.Bytes}
			}
			if fmt.Sprint(got) != fmt.Sprint(all) || len(paths) > MaxConnPaths {
				t.Errorf("seed %d: %v has\n%v, want\n%v", seed, flow, got, all)
			}
		}
		if paths, rest := e.ConnectionPaths(flowcell.FiveTuple{DstPort: 1}); paths != nil || rest != (PathStats{}) {
			t.Errorf("one that never was: %v, %v", paths, rest)
		}
	}
	var none *connPaths
	none.count(&flowcell.Packet{}, nil, 1, 1, 0)
	if paths, _ := (&Egress{}).ConnectionPaths(flowcell.FiveTuple{}); paths != nil {
		t.Error("counted though nobody asked")
	}
}

// A flood of connections is bounded.
func TestConnPaths_bounded(t *testing.T) {
	e := &Egress{seed: 1, clock: clock.Or(nil)}
	e.CountConnections()
	for i := range 2 * maxCounted {
		pkt := flowcell.Packet{Flow: flowcell.FiveTuple{SrcPort: uint16(i), DstPort: uint16(i >> 16), Proto: flowcell.ProtoTCP}}
		e.conns.count(&pkt, nil, 1, 1, 0)
	}
	if n := e.conns.flows.Len(); n != maxCounted {
		t.Errorf("%d connections are counted, want %d", n, maxCounted)
	}
}

// What is counted costs no memory for each packet.
func TestConnPaths_allocatesNothing(t *testing.T) {
	e := &Egress{seed: 1, clock: clock.Or(nil)}
	e.CountConnections()
	via := &pathOut{bounce: netip.MustParseAddr("10.9.0.1")}
	pkt := flowcell.Packet{Flow: flowcell.FiveTuple{SrcPort: 1, Proto: flowcell.ProtoTCP}}
	if n := testing.AllocsPerRun(1000, func() { e.conns.count(&pkt, via, 1, 1, 0) }); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}
