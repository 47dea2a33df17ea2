package schedulerd

import (
	"net/netip"
	"sync"
	"testing"

	"weft/flowcell"
	"weft/hedera/wire"
	"weft/topology"
)

// host is a node whose flows do not end.
type host struct {
	client *wire.Client
	mu     sync.Mutex
	placed map[flowcell.FiveTuple]wire.Placement
	turns  int                    // placements that were another path than before
	hears  func([]wire.Placement) // nil, or what sees each message
}

func newHost(t testing.TB, top *topology.Topology, id topology.NodeID, servers ...netip.AddrPort) *host {
	t.Helper()
	h := &host{placed: make(map[flowcell.FiveTuple]wire.Placement)}
	var err error
	h.client, err = wire.Dial(wire.ClientConfig{Fabric: top.Fingerprint(), Address: top.Node(id).Addr, Servers: servers, Keys: testKeys, Place: h.place})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.client.Close() })
	return h
}

func (h *host) place(list []wire.Placement) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hears != nil {
		h.hears(list)
	}
	for _, p := range list {
		if was, ok := h.placed[p.Tuple]; ok && p.For > 0 && was.Path != p.Path {
			h.turns++
		}
		if h.placed[p.Tuple] = p; p.For == 0 {
			delete(h.placed, p.Tuple)
		}
	}
}

// has reports whether a flow is placed.
func (h *host) has(t flowcell.FiveTuple) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.placed[t]
	return ok
}

func (h *host) paths() (all []int, turns int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.placed {
		all = append(all, p.Path)
	}
	return all, h.turns
}

func tupleOf(top *topology.Topology, src, dst topology.NodeID) flowcell.FiveTuple {
	return flowcell.FiveTuple{Proto: flowcell.ProtoTCP, SrcPort: 1000, DstPort: 80,
		Src: flowcell.AddressFrom(top.Node(src).Addr), Dst: flowcell.AddressFrom(top.Node(dst).Addr)}
}
