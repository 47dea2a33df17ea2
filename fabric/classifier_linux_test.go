package fabric

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// classifyRun is the program without a network, at an edge switch 10.0.1.1 with some ports
// up.
type classifyRun struct {
	t                      *testing.T
	Prog                   *ebpf.Program `ebpf:"weft_classify"`
	Flows, Loads, Settings *ebpf.Map
}

func newClassifyRun(t *testing.T, ports int) *classifyRun {
	t.Helper()
	kerneltest.NeedRoot(t)
	spec, err := loadClassify()
	if err != nil {
		t.Fatal(err)
	}
	coll, err := ebpf.NewCollection(spec)
	if errors.Is(err, ebpf.ErrNotSupported) {
		t.Skipf("no program can be loaded here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(coll.Close)
	r := &classifyRun{t, coll.Programs["weft_classify"], coll.Maps["flows"], coll.Maps["loads"], coll.Maps["settings"]}
	if err := r.Settings.Put(uint32(0), classifySettings{[4]byte{10, 0, 1, 0}, [4]byte{255, 255, 255, 0}, uint32(ports)}); err != nil {
		t.Fatal(err)
	}
	return r
}

// mark returns the mark of a packet that came with one of the host ID's program.
func (r *classifyRun) mark(src, dst string, protocol byte, length int) uint32 {
	r.t.Helper()
	frame := make([]byte, max(length, 64))
	binary.BigEndian.PutUint16(frame[12:], 0x800)
	ip := frame[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	s, d := netip.MustParseAddr(src).As4(), netip.MustParseAddr(dst).As4()
	copy(ip[12:], s[:])
	copy(ip[16:], d[:])
	in, out := make([]byte, 192), make([]byte, 192)
	binary.NativeEndian.PutUint32(in[8:], hostIDMark)
	code, err := r.Prog.Run(&ebpf.RunOptions{Data: frame, Context: in, ContextOut: out})
	if err != nil {
		r.t.Fatal(err)
	}
	if int32(code) != kernel.TCUnspec {
		r.t.Fatalf("the program ends the chain: %d", int32(code))
	}
	return binary.NativeEndian.Uint32(out[8:])
}

const hostIDMark = 0xab000000 | suffixBit | 63

// All packets of a flow go by one port. A new one gets that which has carried least, the
// first of equals (thesis §3.1.6).
func TestClassify_newFlowsGetTheLeastLoadedPort(t *testing.T) {
	r := newClassifyRun(t, 3)
	type pair struct{ src, dst netip.Addr }
	chosen := make(map[pair]int)
	var loads [3]int
	for i := range 300 {
		n := i * i % 37
		f := pair{netip.AddrFrom4([4]byte{10, 0, 1, byte(2 + n%5)}), netip.AddrFrom4([4]byte{10, 2, byte(n), 2})}
		length := 700 + n*11 + i
		want, known := chosen[f]
		if !known {
			want = slices.Index(loads[:], slices.Min(loads[:]))
			chosen[f] = want
		}
		loads[want] += length
		if got := r.mark(f.src.String(), f.dst.String(), 6, length); got != 0xab000000|suffixBit|uint32(want) {
			t.Fatalf("packet %d, flow %d: mark %#x, want that of port %d", i, n, got, want)
		}
	}
}

func TestClassify_leavesAloneWhatStaysBelow(t *testing.T) {
	r := newClassifyRun(t, 2)
	for name, got := range map[string]uint32{
		"a host of the rack": r.mark("10.0.1.2", "10.0.1.3", 6, 100),
		"an outer header":    r.mark("10.0.1.2", "10.4.1.1", 4, 100),
	} {
		if got != hostIDMark {
			t.Errorf("%s: mark %#x, want %#x", name, got, uint32(hostIDMark))
		}
	}
	if got := r.mark("10.0.1.2", "10.0.0.3", 6, 100); got != 0xab000000|suffixBit {
		t.Errorf("another rack of the pod: mark %#x", got)
	}
}

// Flows of a dead port get another one; if all are dead the host ID's mark stays.
func TestClassify_avoidsDeadPorts(t *testing.T) {
	r := newClassifyRun(t, 2)
	dead := func(port, dead uint32) {
		if err := r.Loads.Put(port, classifyLoad{Dead: dead}); err != nil {
			t.Fatal(err)
		}
	}
	mark := func() uint32 { return r.mark("10.0.1.2", "10.3.0.2", 17, 100) & markMask &^ suffixBit }
	first := mark()
	dead(first, 1)
	if got := mark(); got != 1-first {
		t.Errorf("with port %d dead: by port %d", first, got)
	}
	dead(first, 0)
	if got := mark(); got != 1-first {
		t.Errorf("the flow went back to port %d", got)
	}
	dead(0, 1)
	dead(1, 1)
	if got := mark(); got != 63 {
		t.Errorf("all ports dead: by port %d", got)
	}
}

// Step moves flows in the program's table as the figure says, tells it the ports' loads,
// forgets idle flows; Close leaves nothing.
func TestClassifier_rearranges(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	p := twoLevelPlan(t, top, kerneltest.Node(t, top, "e0.1").ID)
	ns := portedNamespace(t, p.Node, p)
	applyNamed(t, ns, p)
	err := kernel.InNamespace(ns, func() error {
		c, err := OpenClassifier(p, time.Second)
		if err != nil {
			return err
		}
		if n := classified(t, c.h); n != 2 {
			t.Errorf("attached to %d ports, want the hosts' 2", n)
		}
		flows := c.program.Maps["flows"]
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
			if err := c.program.Maps["loads"].Lookup(port, &l); err != nil || l.Bytes < 2000 || l.Bytes > 2006 || l.Dead != 0 {
				t.Errorf("port %d: load %+v, %v", port, l, err)
			}
		}
		step(time.Second + time.Second/2) // not yet
		step(12 * time.Second)
		if s, err := c.Stats(); err != nil || s.Moved != 2 || s.Idle != 4 || s.Known != 0 {
			t.Errorf("stats %+v, %v", s, err)
		}
		if err := flows.Lookup(key(0), &classifyState{}); err == nil {
			t.Error("an idle flow is still in the program's table")
		}
		return c.Close()
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
		c, err := OpenClassifier(p, time.Second)
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
		if err := c.Step(0); err != nil {
			t.Error(err)
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
		err = c.Close()
		if n := classified(t, h); n != 0 {
			t.Errorf("Close leaves the program at %d ports", n)
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
			c, err := OpenClassifier(p, time.Second)
			if err != nil {
				return err
			}
			if err := c.Step(0); err != nil {
				t.Error(err)
			}
			if err := c.program.Close(); err != nil {
				t.Error(err)
			}
			c.h.Close()
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
		// A failure leaves nothing.
		bad := p
		bad.Suffixes = slices.Clone(p.Suffixes)
		bad.Suffixes[0].Port = "nosuch"
		if _, err := OpenClassifier(bad, 0); err == nil || !strings.Contains(err.Error(), "nosuch") {
			t.Errorf("without a device: %v", err)
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
		if _, err := OpenClassifier(p, 0); err == nil || !strings.Contains(err.Error(), "two-level") {
			t.Errorf("%s: error %v", p.Node, err)
		}
	}
}
