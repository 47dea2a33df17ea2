package fabric

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// The program gives every last byte the mark that the plan has for it, and leaves alone what
// is not IPv4, and others' bits.
func TestSuffixProgram_marksByHostID(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=6,hosts=7")
	for _, node := range []string{"e0.0", "e1.1", "e2.2", "a0.3", "a0.4"} {
		p := twoLevelPlan(t, top, kerneltest.Node(t, top, node).ID)
		spec, err := suffixProgram(p.Suffixes)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := ebpf.NewProgram(spec)
		if errors.Is(err, ebpf.ErrNotSupported) {
			t.Skipf("no program can be loaded here: %v", err)
		} else if err != nil {
			t.Fatal(err)
		}
		defer prog.Close()
		run := func(etherType uint16, last byte) uint32 {
			frame := make([]byte, 64)
			binary.BigEndian.PutUint16(frame[12:], etherType)
			copy(frame[14:], []byte{0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 3, 1, last})
			in, out := make([]byte, 192), make([]byte, 192) // struct __sk_buff
			binary.NativeEndian.PutUint32(in[8:], 0xabc00123)
			r, err := prog.Run(&ebpf.RunOptions{Data: frame, Context: in, ContextOut: out})
			if err != nil {
				t.Fatal(err)
			}
			if int32(r) != kernel.TCUnspec {
				t.Fatalf("the program ends the chain: %d", int32(r))
			}
			return binary.NativeEndian.Uint32(out[8:])
		}
		for _, g := range p.Suffixes {
			for _, id := range g.IDs {
				for _, last := range []byte{byte(id), byte(id) | 128} {
					if got, want := run(0x800, last), 0xabc00000|g.Mark; got != want {
						t.Errorf("%s: mark of x.x.x.%d is %#x, want %#x", node, last, got, want)
					}
				}
			}
		}
		if got := run(0x86dd, 2); got != 0xabc00123 {
			t.Errorf("%s: mark of IPv6 is %#x", node, got)
		}
		for last := range 256 {
			if got := run(0x800, byte(last)) &^ 0xfffff800; got < suffixBit || got >= suffixBit+uint32(len(p.Suffixes)) {
				t.Errorf("%s: mark of x.x.x.%d is %#x", node, last, got)
			}
		}
	}
}

// Apply makes tables, rules and programs, is content the second time, and the plan without
// host IDs removes all.
func TestApply_twoLevelTables(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	p := twoLevelPlan(t, top, kerneltest.Node(t, top, "e0.1").ID)
	plain := mustPlan(t, top, "e0.1")
	ns := portedNamespace(t, p.Node, p)
	count := func() (routes, rules, programs int) {
		err := kernel.InNamespace(ns, func() error {
			h, err := netlink.NewHandle(kernel.Families...)
			if err != nil {
				return err
			}
			defer h.Close()
			list, err := plannedRoutes(h)
			for id := range list {
				if isSuffixTable(id.table) {
					routes++
				}
			}
			all, err2 := h.RuleList(netlink.FAMILY_V4)
			for _, r := range all {
				if r.Protocol == kernel.RouteProtocol {
					rules++
				}
			}
			ports, err3 := p.links(h)
			for _, port := range ports {
				id, err := kernel.SuffixFilter.Program(h, port)
				if err != nil {
					return err
				}
				if id != 0 {
					programs++
				}
			}
			return errors.Join(err, err2, err3)
		})
		if err != nil {
			t.Fatal(err)
		}
		return routes, rules, programs
	}
	if r := applyNamed(t, ns, p); r.Changed == 0 {
		t.Error("nothing changed the first time")
	}
	if r := applyNamed(t, ns, p); r.Changed != 0 {
		t.Errorf("the second time: %v", r.Did)
	}
	first := 0
	for _, r := range p.Routes {
		if r.Table != 0 {
			first++
		}
	}
	if routes, rules, programs := count(); routes != first || rules != 3 || programs != 4 {
		t.Errorf("%d routes, %d rules, %d programs, want %d, 3 and 4", routes, rules, programs, first)
	}
	applyNamed(t, ns, plain)
	if routes, rules, programs := count(); routes+rules+programs != 0 {
		t.Errorf("%d routes, %d rules, %d programs are left", routes, rules, programs)
	}
	if r := applyNamed(t, ns, plain); r.Changed != 0 {
		t.Errorf("the plan without host IDs, the second time: %v", r.Did)
	}
}

// What the kernel looks up is what the plan says, for a packet that came in with its mark.
func TestApply_theKernelLooksUpTwoLevels(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	for _, node := range []string{"e0.1", "a2.3"} {
		p := twoLevelPlan(t, top, kerneltest.Node(t, top, node).ID)
		ns := portedNamespace(t, p.Node, p)
		applyNamed(t, ns, p)
		err := kernel.InNamespace(ns, func() error {
			h, err := netlink.NewHandle(kernel.Families...)
			if err != nil {
				return err
			}
			defer h.Close()
			ports, err := p.links(h)
			if err != nil {
				return err
			}
			index := portIndexes(ports)
			for dst := range top.Hosts() {
				for _, g := range p.Suffixes {
					if !slices.Contains(g.IDs, int(dst.Addr.As4()[3])) {
						continue
					}
					got, err := h.RouteGetWithOptions(dst.Addr.AsSlice(), &netlink.RouteGetOptions{Iif: "p0", SrcAddr: []byte{10, 9, 9, 9}, Mark: g.Mark})
					if err != nil || len(got) != 1 {
						return errors.Join(err, errors.New("no route to "+dst.Name))
					}
					if want := lookUp(p, dst.Addr); len(want) != 1 || got[0].LinkIndex != index[want[0].Port] {
						t.Errorf("%s: to %s by device %d, want %v", node, dst.Addr, got[0].LinkIndex, want)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The commands that are printed for nft give packets the same marks.
func TestTwoLevel_nftMarksAlike(t *testing.T) {
	kerneltest.NeedRoot(t)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("nft is not installed")
	}
	top := kerneltest.Topology(t, "fat-tree:k=6,hosts=7")
	p := twoLevelPlan(t, top, kerneltest.Node(t, top, "e1.1").ID)
	ns := kerneltest.Namespace(t, p.Node)
	err := kernel.InNamespace(ns, func() error {
		sh := func(command string) string {
			out, err := exec.Command("sh", "-c", command).CombinedOutput() // it keeps this thread's namespace
			if err != nil {
				t.Errorf("%s: %v: %s", command, err, out)
			}
			return string(out)
		}
		if out, err := exec.Command("nft", "add", "table", "ip", "try").CombinedOutput(); err != nil {
			t.Skipf("the kernel has no nf_tables: %s", out)
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return err
		}
		for range 2 { // applying again changes nothing
			sh(strings.Join(p.suffixCommands(), "\n"))
		}
		var count strings.Builder
		for last := 2; last < 255; last++ { // 1 is where answers come to
			g := slices.IndexFunc(p.Suffixes, func(g SuffixGroup) bool { return slices.Contains(g.IDs, last&hostIDMask) })
			if g >= 0 {
				fmt.Fprintf(&count, "add rule ip weft_suffix prerouting ip daddr 127.0.0.%d meta mark %#x counter\n", last, p.Suffixes[g].Mark)
			} else {
				fmt.Fprintf(&count, "add rule ip weft_suffix prerouting ip daddr 127.0.0.%d meta mark %#x-%#x counter\n", last, suffixBit, suffixBit+len(p.Suffixes)-1)
			}
		}
		sh("nft -f - <<'E'\n" + count.String() + "E")
		for last := 2; last < 255; last++ { // 1 is where answers come to
			c, err := net.Dial("udp", fmt.Sprintf("127.0.0.%d:9", last))
			if err != nil {
				return err
			}
			c.Write([]byte("x"))
			c.Close()
		}
		rules := sh("nft list chain ip weft_suffix prerouting")
		if n := strings.Count(rules, "packets 1 bytes"); n != 253 {
			t.Errorf("%d of 253 packets have the mark of their group", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
