package hostprog

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"weft/encap"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// twoPlanes is a fabric of two planes with two spines each, as its first host sees it, and the
// last host's address.
func twoPlanes(t *testing.T) (top *topology.Topology, self, far netip.Addr) {
	t.Helper()
	s, err := operator.SpecHomed(kerneltest.Topology(t, "leaf-spine:leaves=2,spines=2,hosts=1"), 1, operator.Homing{Planes: 2})
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(s)
	if err != nil {
		t.Fatal(err)
	}
	self, far = g.Node(0).Addresses[0], g.Node(1).Addresses[0]
	if top, err = topology.FromGraph(g, self); err != nil {
		t.Fatal(err)
	}
	return top, self, far
}

// A packet leaves by the uplink that its path begins with, whichever the kernel has chosen. It
// gets one outer header, and counts once.
func TestSpray_severalUplinks(t *testing.T) {
	top, self, dst := twoPlanes(t)
	near, far := kerneltest.Namespace(t, "near"), kerneltest.Namespace(t, "far")
	kerneltest.Shell(t, near, `set -e
ip link set lo up
for i in 1 2; do
  ip link add eth$i type veth peer name far$i netns `+far+`
  ip link set eth$i up
  sysctl -qw net.ipv6.conf.eth$i.disable_ipv6=1
done
ip address add `+self.String()+`/32 dev lo`)
	kerneltest.Shell(t, far, "for i in 1 2; do sysctl -qw net.ipv6.conf.far$i.disable_ipv6=1; ip link set far$i up; done")
	kerneltest.Shell(t, near, `set -e
for i in 1 2; do ip neigh replace 10.255.0.$i lladdr $(ip netns exec `+far+` cat /sys/class/net/far$i/address) dev eth$i nud permanent; done
ip route add default nexthop via 10.255.0.1 dev eth1 onlink nexthop via 10.255.0.2 dev eth2 onlink`)
	cfg := SprayConfig{Uplink: "eth1", Addresses: []netip.Addr{self}, Topology: top, Policy: mustPolicy(t, "drb"),
		Uplinks: []Uplink{{Device: "eth1", Gateway: netip.MustParseAddr("10.255.0.1")}, {Device: "eth2"}}} // of the other the kernel finds the switch
	var s *Spray
	if err := kernel.InNamespace(near, func() (err error) {
		s, err = AttachSpray(cfg)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	arrive := []*kerneltest.Wire{kerneltest.OpenWire(t, far, "far1", near, "eth1"), kerneltest.OpenWire(t, far, "far2", near, "eth2")}
	const rounds = 3
	segment := append([]byte{0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x10, 1, 0, 0xab, 0xcd, 0, 0}, "payload"...)
	sent := 0
	for by, device := range []string{"eth1", "eth2"} { // where the kernel's route would lead
		out := kerneltest.OpenWire(t, near, device, far, []string{"far1", "far2"}[by])
		for id := range uint16(4 * rounds) {
			inner := kerneltest.IPv4{ID: id, Frag: 0x4000, TTL: 33, Protocol: 6, Src: self, Dst: dst}
			out.Send(t, inner.Bytes(segment))
			sent++
		}
	}
	set := top.PathsTo(0, dst)
	if set.Count() != 4 {
		t.Fatalf("%d paths", set.Count())
	}
	for n := range set.Count() {
		for range 2 * rounds {
			outer := arrive[set.From(n)].Receive(t)
			to := netip.AddrFrom4([4]byte(outer[16:20]))
			inner, err := encap.Decapsulate(outer)
			if err != nil || !bytes.HasSuffix(inner, []byte("payload")) || inner[9] != 6 {
				t.Fatalf("arrives %x: %v", outer, err)
			}
			if m, ok := set.Via(to); !ok || set.From(m) != set.From(n) {
				t.Errorf("to %v by uplink %d", to, set.From(n))
			}
		}
	}
	st, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if st.Seen != uint64(sent) || st.Encapsulated != uint64(sent) || st.Passed != 0 || len(st.Bounces) != 4 {
		t.Errorf("of %d packets: %+v", sent, st)
	}
	for _, b := range st.Bounces {
		n, _ := set.Via(b.Addr)
		if b.Packets != 2*rounds || b.Uplink != []string{"eth1", "eth2"}[set.From(n)] {
			t.Errorf("%+v", b)
		}
	}
	// Without the paths of an uplink nothing goes by it.
	if err := s.SetTopology(top.Without(top.Beyond(0)...)); err != nil {
		t.Fatal(err)
	}
	out := kerneltest.OpenWire(t, near, "eth1", far, "far1")
	for id := range uint16(4) {
		inner := kerneltest.IPv4{ID: id, Frag: 0x4000, TTL: 33, Protocol: 6, Src: self, Dst: dst}
		out.Send(t, inner.Bytes(segment))
		arrive[1].Receive(t)
	}
	// The program is at both uplinks until the end.
	if mended, err := s.Repair(); err != nil || len(mended) > 0 {
		t.Errorf("%v, %v", mended, err)
	}
	kerneltest.Shell(t, near, "ip link del eth2")
	if _, err := s.Repair(); !errors.Is(err, ErrUplinkGone) {
		t.Errorf("without a device: %v", err)
	}
}

func TestSpray_severalUplinksRefused(t *testing.T) {
	top, self, _ := twoPlanes(t)
	for _, c := range []struct {
		uplinks []Uplink
		want    string
	}{
		{[]Uplink{{Device: "eth1"}}, "Uplinks are 1, and the host has 2"},
		{[]Uplink{{Device: "eth1"}, {Device: "eth1"}}, "eth1 is given twice"},
		{[]Uplink{{Device: "eth2"}, {Device: "eth3"}}, "eth1 is not among"},
	} {
		cfg := SprayConfig{Uplink: "eth1", Addresses: []netip.Addr{self}, Topology: top, Policy: mustPolicy(t, "drb"), Uplinks: c.uplinks}
		if err := cfg.check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.uplinks, err)
		}
	}
}
