package hostprog

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/encap"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// Attaching again replaces the program; the one replaced must not take the new
// one along when it is closed, nor the record of what was set before.
func TestSpray_replaced(t *testing.T) {
	l := sprayLab(t)
	s := newSprayed(t, l, "rrb")
	before := s.gsoMaxSegs(t)
	first := s.spray
	cfg := s.config(t, "drb")
	cfg.PerPacketTCP = true
	s.attach(t, cfg)
	second := s.spray
	s.attach(t, cfg)
	s.oracle.table = mustTable(t, cfg.Topology, cfg.Self, cfg.Policy)
	for _, o := range []*Spray{first, second} {
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for id := range uint16(4) {
		s.check(t, "by the one that is left", s.numberedSegment(id))
	}
	if n := s.gsoMaxSegs(t); n != 1 {
		t.Errorf("gso_max_segs is %d, want 1", n)
	}
	// Without per-packet TCP the knob goes back at once.
	cfg.PerPacketTCP = false
	s.attach(t, cfg)
	if n := s.gsoMaxSegs(t); n != before {
		t.Errorf("gso_max_segs is %d, want %d as before", n, before)
	}
}

// What a crash left is found and put back by a process that knows nothing of it.
func TestDetachSpray_afterACrash(t *testing.T) {
	l := sprayLab(t)
	s := newSprayed(t, l, "drb")
	s.spray.Close()
	s.setGSOMaxSegs(t, 32)
	cfg := s.config(t, "drb")
	cfg.PerPacketTCP = true
	s.attach(t, cfg)
	crashed := s.spray
	crashed.release()
	kerneltest.ForgetPrograms()
	s.attach(t, cfg) // and a restart that crashes, too
	s.spray.release()
	kerneltest.ForgetPrograms()

	s.out.Send(t, s.numberedSegment(1))
	if p := s.receive(t); p[9] != 4 {
		t.Errorf("not sprayed by what the crash left:\n%s", dump(p))
	}
	s.detach(t, true)
	if n := s.gsoMaxSegs(t); n != 32 {
		t.Errorf("gso_max_segs is %d, was 32", n)
	}
	s.out.Send(t, s.numberedSegment(1))
	if p := s.receive(t); p[9] != 6 {
		t.Errorf("still sprayed:\n%s", dump(p))
	}
	s.detach(t, false)

	// What somebody else has set since stays.
	s.attach(t, cfg)
	s.setGSOMaxSegs(t, 7)
	s.detach(t, true)
	if n := s.gsoMaxSegs(t); n != 7 {
		t.Errorf("gso_max_segs is %d, somebody set 7", n)
	}
}

// setGSOMaxSegs changes the knob until the end of the test.
func (s *sprayed) setGSOMaxSegs(t *testing.T, n int) {
	t.Helper()
	before := s.gsoMaxSegs(t)
	set := func(n int) {
		err := s.lab.Do(s.src.ID, func() error {
			link, err := netlink.LinkByName("p0")
			if err != nil {
				return err
			}
			return netlink.LinkSetGSOMaxSegs(link, n)
		})
		if err != nil {
			t.Error(err)
		}
	}
	set(n)
	t.Cleanup(func() { set(int(before)) })
}

func (s *sprayed) detach(t *testing.T, want bool) {
	t.Helper()
	err := s.lab.Do(s.src.ID, func() error {
		removed, err := DetachSpray("p0")
		if removed > 0 != want {
			t.Errorf("removed %v, want %v", removed, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAttachSpray_errorsSayWhatToDo(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	own := []netip.Addr{top.Node(0).Addr}
	ok := SprayConfig{Uplink: "p0", Addresses: own, Topology: top, Policy: mustPolicy(t, "drb")}
	ns := kerneltest.Namespace(t, "errors")
	for _, c := range []struct {
		edit func(*SprayConfig)
		want string
	}{
		{func(c *SprayConfig) { c.Topology = nil }, "Topology is missing"},
		{func(c *SprayConfig) { c.Self = 16 }, "no host of fat-tree:k=4"},
		{func(c *SprayConfig) { c.Self = -1 }, "no host of fat-tree:k=4"},
		{func(c *SprayConfig) { c.Addresses = nil }, "must be 1 to 16"},
		{func(c *SprayConfig) { c.Addresses = slices.Repeat(own, 17) }, "must be 1 to 16"},
		{func(c *SprayConfig) { c.Addresses = []netip.Addr{netip.IPv6Loopback()} }, "::1 is not IPv4"},
		{func(c *SprayConfig) { c.Policy = mustPolicy(t, "local") }, "choose one of [ecmp rb rrb drb presto flowcell-drb auto letflow rand luopan conga]"},
		{func(c *SprayConfig) { c.Policy, c.PerPacketTCP = mustPolicy(t, "presto"), true }, "PerPacketTCP with policy presto"},
		{func(c *SprayConfig) { c.Policy = mustPolicy(t, "drill") }, "(packet, least own backlog) is decided by the stack, packet by packet: it needs what was sent by each path, and when"},
		{func(c *SprayConfig) { c.Policy = mustPolicy(t, "drill") }, "it needs what was sent by each path"},
		{func(c *SprayConfig) { c.Carrier = encap.CarrierMPLS }, "Carrier is mpls, which the spray program does not write; use ipip or srv6"},
		{func(c *SprayConfig) { c.Cut = own }, "Cut with policy drb"},
		{func(c *SprayConfig) { c.Policy, c.Cut = mustPolicy(t, "ecmp"), own }, "Cut with policy ecmp"},
		{func(c *SprayConfig) {
			c.Policy, c.Cut = mustPolicy(t, "presto"), []netip.Addr{top.Node(1).Addr}
		}, "Cut: 10.0.0.3 is not among Addresses"},
		{func(*SprayConfig) {}, "port p0: no such device"},
		{func(c *SprayConfig) { c.Uplink = "lo" }, "an Ethernet device is needed"},
	} {
		cfg := ok
		c.edit(&cfg)
		err := kernel.InNamespace(ns, func() error {
			_, err := AttachSpray(cfg)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "spray: ") {
			t.Errorf("%v; does not say %q", err, c.want)
		}
	}
}

func TestSpray_closedAndOtherFabrics(t *testing.T) {
	l := sprayLab(t)
	s := newSprayed(t, l, "drb")
	if err := s.spray.SetTopology(nil); err == nil {
		t.Error("no topology was taken")
	}
	if err := s.spray.SetTopology(kerneltest.Topology(t, "fat-tree:k=6")); err == nil || !strings.Contains(err.Error(), "attach anew") {
		t.Errorf("another fabric: %v", err)
	}
	for range 2 {
		if err := s.spray.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if err := s.spray.SetTopology(l.Config.Topology); err != errSprayClosed {
		t.Errorf("SetTopology after Close: %v", err)
	}
	if _, err := s.spray.Stats(); err != errSprayClosed {
		t.Errorf("Stats after Close: %v", err)
	}
}
