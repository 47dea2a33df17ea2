package lab

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weft/encap"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
)

// waitCount is how long counters may take: they are the kernel's, per CPU.
const waitCount = time.Second

// randomStacks are addresses as senders make them and as they must not: of ports
// that are there, that are not, of early ends, and of noise.
func randomStacks(ports int) (stacks [][16]byte, seed uint64) {
	seed = 6
	r := rand.New(rand.NewPCG(seed, 0))
	for range 60 {
		a := encap.SIDBlock.Addr().As16()
		for i := 2; i < 2+r.IntN(15); i++ {
			a[i] = byte(1 + r.IntN(ports+1))
			if r.IntN(8) == 0 {
				a[i] = byte(r.IntN(256))
			}
		}
		stacks = append(stacks, a)
	}
	return stacks, seed
}

// A port that is set down takes its routes with it, which come back; the other
// labels stay. Hosts must choose other paths: there is no other way for a label.
func TestLabels_failAndHeal(t *testing.T) {
	slowtest.System(t)
	l := upLabelLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=4")})
	top := l.Config.Topology
	src, dst := kerneltest.Node(t, top, "h0.0.2"), kerneltest.Node(t, top, "h1.0.2")
	from, to := openWire(t, l, src.ID, 0), openWire(t, l, dst.ID, 0)
	set := top.Paths(src.ID, dst.ID)
	send := func(n int) []byte {
		addr, err := encap.SIDs(set.Labels(n))
		if err != nil {
			t.Fatal(err)
		}
		inner := kerneltest.IPv4{ID: uint16(n), Frag: 0x4000, TTL: 64, Protocol: 253, Src: src.Addr, Dst: dst.Addr}
		from.SendLabelled(t, ipv6{next: 4, hops: 64, src: topology.Addr6(src.Addr), dst: addr}.bytes(inner.Bytes(nil)))
		return inner.Bytes(nil)
	}
	// The core's end goes down: its label for pod 1 is a label of no port.
	mustFail(t, l, "a1.2-3.0", FailLoud)
	send(0)
	core := kerneltest.Node(t, top, "3.0")
	kerneltest.Within(t, waitCount, "the core drops and counts", func() bool { return labelCounters(t, l, core).Unknown == 1 })
	for _, n := range []int{1, 2, 3} {
		send(n)
		if got := to.Receive(t); got[5] != byte(n) {
			t.Errorf("path %d: got the packet of path %d", n, got[5])
		}
	}
	mustHeal(t, l)
	kerneltest.Within(t, waitCount, "the link is up", func() bool { return portTo(t, l, "a1.2", core.Name).Up })
	send(0)
	if got := to.Receive(t); got[5] != 0 {
		t.Errorf("healed: got the packet of path %d", got[5])
	}
	// Decapsulation is by the route of one port; there must be others.
	mustFail(t, l, "h1.0.3-e1.0", FailLoud)
	mustFail(t, l, "e1.0-a1.3", FailLoud)
	send(1)
	if got := to.Receive(t); got[5] != 1 {
		t.Errorf("with ports of the edge switch down: got the packet of path %d", got[5])
	}
	mustHeal(t, l)
	wantAsBuilt(t, l)
	for n := range l.Config.nodes() {
		err := l.Do(n.ID, func() error {
			neighbours, err := netlink.NeighList(0, netlink.FAMILY_V6)
			neighbours = slices.DeleteFunc(neighbours, func(n netlink.Neigh) bool { return n.State != netlink.NUD_PERMANENT })
			if want := len(l.Config.ports(n.ID)); len(neighbours) != want {
				t.Errorf("%s knows %d IPv6 neighbours, want %d", n.Name, len(neighbours), want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A lab of some nodes has labels for the ports that it has.
func TestLabels_ofPartOfAFabric(t *testing.T) {
	slowtest.System(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	cfg := Config{Topology: top}
	for _, name := range []string{"h0.0.2", "e0.0", "a0.3"} {
		cfg.Only = append(cfg.Only, kerneltest.Node(t, top, name).ID)
	}
	l := upLabelLab(t, cfg)
	wantAsBuilt(t, l)
	p, err := l.Plan(kerneltest.Node(t, top, "e0.0").ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Ports) != 2 || len(p.SIDs) != 3 || len(p.Gate) != 1 {
		t.Errorf("%d ports, labels %+v, gate %+v", len(p.Ports), p.SIDs, p.Gate)
	}
	back, err := Open(l.Config.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if !back.Config.SRv6 {
		t.Error("the lab has forgotten that it forwards by labels")
	}
}
