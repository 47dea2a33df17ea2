package spray

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"weft/flowcell"
	"weft/topology"
)

const (
	leafSpine = "leaf-spine:leaves=4,spines=4,hosts=4,host-rate=10000,fabric-rate=10000"
	fatTree   = "fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000"
	vl2       = "vl2:d0=2,d1=4,d2=4,host-rate=1000,fabric-rate=5000,core-rate=5000"
)

func parse(t testing.TB, spec string) *topology.Topology {
	t.Helper()
	topo, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func without(t testing.TB, topo *topology.Topology, names ...string) *topology.Topology {
	t.Helper()
	for _, name := range names {
		l, err := topo.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		topo = topo.Without(l.ID)
	}
	return topo
}

func newHosts(t testing.TB, c HostsConfig) *Hosts {
	t.Helper()
	h, err := NewHosts(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func newSwitch(t testing.TB, c SwitchConfig, q Queues) Switch {
	t.Helper()
	s, err := NewSwitch(c, q)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tuple is that of flow number n between two hosts.
func tuple(src, dst topology.NodeID, n int) *flowcell.FiveTuple {
	addr := func(h topology.NodeID) flowcell.Address {
		return flowcell.AddressFrom(netip.AddrFrom4([4]byte{10, byte(h >> 16), byte(h >> 8), byte(h)}))
	}
	return &flowcell.FiveTuple{Src: addr(src), Dst: addr(dst), SrcPort: uint16(n), DstPort: 80, Proto: flowcell.ProtoTCP}
}

// queues are of ports, by number; those not in it are empty.
type queues map[int32]int

func (q queues) QueueBytes(port int32) int { return q[port] }

// someDown takes some links between switches out.
func someDown(topo *topology.Topology, rng *rand.Rand, n int) *topology.Topology {
	for range n {
		topo = topo.Without(topology.LinkID(topo.NumHosts() + rng.IntN(topo.NumLinks()-topo.NumHosts())))
	}
	return topo
}

const ms = time.Millisecond

// times is how often each value occurs.
func times(list []int) string {
	counts := map[int]int{}
	for _, v := range list {
		counts[v]++
	}
	return fmt.Sprint(counts)
}
