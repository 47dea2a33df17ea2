package fabric

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// Step moves flows in the program's table as the figure says, tells it the ports' loads,
// forgets idle flows; Detach leaves nothing.
func TestClassifier_rearranges(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	p := twoLevelPlan(t, top, kerneltest.Node(t, top, "e0.1").ID)
	ns := portedNamespace(t, p.Node, p)
	applyNamed(t, ns, p)
	err := kernel.InNamespace(ns, func() error {
		c, err := OpenClassifier(p, "classifier")
		if err != nil {
			return err
		}
		if n := classified(t, c.h); n != 2 {
			t.Errorf("attached to %d ports, want the hosts' 2", n)
		}
		flows := c.program.Maps[classifyMapFlows]
		key := func(i int) classifyKey { return classifyKey{[4]byte{10, 0, 1, 2}, [4]byte{10, 3, 0, byte(i)}} }
		send := func(total uint64) {
			for i := range 4 {
				var s classifyState
				flows.Lookup(key(i), &s) // port 0 at first
				s.Bytes = total + uint64(i)
				if err := flows.Put(key(i), s); err != nil {
					t.Error(err)
				}
			}
		}
		step := func(now time.Duration) {
			if err := c.Step(now); err != nil {
				t.Error(err)
			}
		}
		step(0)
		send(1000)
		step(time.Second)
		count := [2]int{}
		for i := range 4 {
			var s classifyState
			if err := flows.Lookup(key(i), &s); err != nil {
				return err
			}
			count[s.Port]++
		}
		if count != [2]int{2, 2} {
			t.Errorf("flows by port %v, want 2 each", count)
		}
		var l classifyLoad
		for port := range uint32(2) {
			if err := c.program.Maps[classifyMapLoads].Lookup(port, &l); err != nil || l.Bytes < 2000 || l.Bytes > 2006 || l.Dead != 0 {
				t.Errorf("port %d: load %+v, %v", port, l, err)
			}
		}
		step(time.Second + time.Second/2) // not yet
		step(12 * time.Second)
		if s, err := c.Stats(); err != nil || s.Moved != 2 || s.Evicted != 4 || s.Known != 0 {
			t.Errorf("stats %+v, %v", s, err)
		}
		if err := flows.Lookup(key(0), &classifyState{}); err == nil {
			t.Error("an idle flow is still in the program's table")
		}
		return c.Detach()
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := applyNamed(t, ns, p); r.Changed != 0 {
		t.Errorf("the classifier changed what is planned: %v", r.Did)
	}
}

// A device that is new at a port is classified, too. A port up without a device is dead.
func TestClassifier_newDevices(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	p := twoLevelPlan(t, top, kerneltest.Node(t, top, "e0.1").ID)
	ns := portedNamespace(t, p.Node, p)
	applyNamed(t, ns, p)
	err := kernel.InNamespace(ns, func() error {
		c, err := OpenClassifier(p, "classifier")
		if err != nil {
			return err
		}
		for _, name := range []string{"p0", p.Suffixes[0].Port} {
			gone, err := c.h.LinkByName(name)
			if err != nil {
				return err
			}
			if err := c.h.LinkDel(gone); err != nil {
				return err
			}
		}
		veth := netlink.NewVeth(netlink.NewLinkAttrs())
		veth.Name, veth.PeerName = "p0", "far"
		if err := c.h.LinkAdd(veth); err != nil {
			return err
		}
		for now := range time.Duration(2) {
			if err := c.Step(now * time.Second); err != nil {
				t.Error(err)
			}
		}
		if did, err := c.RepairSettings(); err != nil || len(did) != 1 {
			t.Errorf("repaired %q, %v, want the new device", did, err)
		}
		if n := classified(t, c.h); n != 2 {
			t.Errorf("attached to %d ports, want 2 with the new device", n)
		}
		if !c.table.Dead(0) || c.table.Dead(1) {
			t.Errorf("ports are dead: %v, %v; want the first", c.table.Dead(0), c.table.Dead(1))
		}
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		err = c.Detach()
		if n := classified(t, h); n != 0 {
			t.Errorf("Detach leaves the program at %d ports", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What a crash has left the next one replaces, and a plan without groups removes.
func TestClassifier_crash(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	p := twoLevelPlan(t, top, kerneltest.Node(t, top, "e0.1").ID)
	ns := portedNamespace(t, p.Node, p)
	applyNamed(t, ns, p)
	err := kernel.InNamespace(ns, func() error {
		for range 2 {
			c, err := OpenClassifier(p, "classifier")
			if err != nil {
				return err
			}
			if err := c.Step(0); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			kerneltest.ForgetPrograms()
		}
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		if n := classified(t, h); n != 2 {
			t.Errorf("the crash has left %d programs, want 2", n)
		}
		if _, err := Apply(mustPlan(t, top, "e0.1")); err != nil {
			return err
		}
		if n := classified(t, h); n != 0 {
			t.Errorf("%d programs are left", n)
		}
		if _, err := Apply(p); err != nil {
			return err
		}
		c, err := OpenClassifier(p, "classifier")
		if err != nil {
			return err
		}
		defer c.Close()
		if n, err := DetachClassifier([]string{"p0", "p1", "p2", "p3"}); n != 2 || err != nil || classified(t, h) != 0 {
			t.Errorf("the program was removed from %d ports, %v, and is left at %d", n, err, classified(t, h))
		}
		if did, err := c.Repair(); err != nil || len(did) != 2 || classified(t, h) != 2 {
			t.Errorf("repaired %q, %v, and it is at %d ports", did, err, classified(t, h))
		}
		// A failure leaves nothing.
		bad := p
		bad.Ports = slices.Clone(p.Ports)
		bad.Ports[0].Name, bad.Ports[1].Name = "nosuch", "no2"
		if _, err := OpenClassifier(bad, "classifier"); err == nil || !strings.Contains(err.Error(), "nosuch") {
			t.Errorf("without a device: %v", err)
		}
		if n := classified(t, h); n != 2 {
			t.Errorf("it has touched %d of the other's 2 ports", 2-n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A program that takes over from another one knows its flows, and goes on.
func TestClassifier_inherited(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	p := twoLevelPlan(t, top, kerneltest.Node(t, top, "e0.1").ID)
	ns := portedNamespace(t, p.Node, p)
	applyNamed(t, ns, p)
	err := kernel.InNamespace(ns, func() error {
		c, err := OpenClassifier(p, "classifier")
		if err != nil {
			return err
		}
		key := classifyKey{[4]byte{10, 0, 1, 2}, [4]byte{10, 3, 0, 2}}
		if err := c.program.Maps[classifyMapFlows].Put(key, classifyState{Bytes: 7}); err != nil {
			return err
		}
		words, err := c.Descriptors()
		if err != nil {
			return err
		}
		if err := c.Close(); err != nil {
			return err
		}
		next, err := InheritClassifier(p, "classifier:moves=1", words)
		if err != nil {
			return err
		}
		for now := range time.Duration(2) {
			if err := next.Step(now * time.Second); err != nil {
				t.Error(err)
			}
		}
		if s, err := next.Stats(); err != nil || s.Known != 1 || s.Rule != "classifier:interval=1s,moves=1" {
			t.Errorf("%+v, %v", s, err)
		}
		if did, err := next.Repair(); err != nil || len(did) != 0 {
			t.Errorf("repaired %q, %v", did, err)
		}
		if err := next.Detach(); err != nil {
			return err
		}
		if _, err := next.Descriptors(); err == nil {
			t.Error("a closed one has descriptors")
		}
		_, err = InheritClassifier(p, "classifier", "")
		if err == nil || !strings.Contains(err.Error(), "no descriptors") {
			t.Errorf("without descriptors: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// classified counts the devices of the calling thread's namespace that have the program.
func classified(t *testing.T, h *netlink.Handle) (n int) {
	t.Helper()
	all, err := kernel.Dumped(h.LinkList)
	if err != nil {
		t.Error(err)
	}
	for _, port := range all {
		if id, err := kernel.ClassifyFilter.Program(h, port); err == nil && id != 0 {
			n++
		}
	}
	return n
}

func TestOpenClassifier_refuses(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	for _, p := range []NodePlan{mustPlan(t, top, "e0.1"), twoLevelPlan(t, top, kerneltest.Node(t, top, "3.0").ID)} {
		if _, err := OpenClassifier(p, "classifier"); err == nil || !strings.Contains(err.Error(), "two-level") {
			t.Errorf("%s: error %v", p.Node, err)
		}
	}
	p := twoLevelPlan(t, top, kerneltest.Node(t, top, "e0.1").ID)
	for _, rule := range []string{"two-level", "classifier:moves=0", "spray"} {
		if _, err := OpenClassifier(p, rule); err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(rule, "=0")[:5]) {
			t.Errorf("rule %s: error %v", rule, err)
		}
	}
}
