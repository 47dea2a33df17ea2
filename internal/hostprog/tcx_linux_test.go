package hostprog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// needTCX skips a test on kernels without.
func needTCX(t *testing.T, u *uplinkTest) {
	t.Helper()
	if err := hasTCX(u); errors.Is(err, kerneltest.ErrNoTCX) {
		t.Skip(err)
	}
}

// A program of others that ends the chain, wherever it is and whenever it came, does
// not keep packets from being sprayed, or is named.
func TestSpray_besideOtherPrograms(t *testing.T) {
	u := newUplinkTest(t)
	needTCX(t, u)
	end := kerneltest.ForeignProgram(t, "cil_to_netdev", kerneltest.TCXEnd)
	hook := ebpf.AttachTCXEgress
	foreign := func(front bool) {
		t.Helper()
		all, err := u.spray.Foreign()
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 1 || all[0].Name != "cil_to_netdev" || all[0].By != "TCX" || all[0].Hook != "egress" || all[0].Front != front || all[0].ID == 0 {
			t.Errorf("foreign: %+v, want cil_to_netdev, in front: %t", all, front)
		}
	}
	for _, c := range []struct {
		name   string
		anchor link.Anchor
		before bool // weft
		hidden bool
	}{
		{"before weft", link.Head(), true, false},
		{"in front, later", link.Head(), false, true},
		{"behind, later", link.Tail(), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.before {
				u.do(t, func() error { kerneltest.AttachForeign(t, u.port, hook, end, c.anchor); return nil })
				u.attach(t)
			} else {
				u.attach(t)
				u.do(t, func() error { kerneltest.AttachForeign(t, u.port, hook, end, c.anchor); return nil })
			}
			defer u.do(t, func() error { return kerneltest.DetachForeign(u.port, hook, end) })
			seen, err := u.spray.Stats()
			if err != nil {
				t.Fatal(err)
			}
			if got := u.sprays(t); got == c.hidden {
				t.Errorf("sprayed %t before Repair", got)
			}
			more, err := u.spray.Stats()
			if err != nil || (more.Seen > seen.Seen) == c.hidden {
				t.Errorf("%d packets seen, then %d, %v; hidden: %t", seen.Seen, more.Seen, err, c.hidden)
			}
			foreign(c.hidden)
			if c.hidden {
				u.repair(t, "moved weft-spray to the front", "egress of p0", "cil_to_netdev")
			}
			u.repair(t)
			if !u.sprays(t) {
				t.Error("not sprayed after Repair")
			}
			foreign(false)
			if err := u.spray.Close(); err != nil {
				t.Fatal(err)
			}
			if u.sprays(t) {
				t.Error("sprayed after Close")
			}
		})
	}
}

// What was deleted is put back.
func TestSpray_repairsWhatIsGone(t *testing.T) {
	t.Run("TCX", func(t *testing.T) {
		u := newUplinkTest(t)
		needTCX(t, u)
		u.attach(t)
		u.do(t, func() error { return kerneltest.DetachForeign(u.port, ebpf.AttachTCXEgress, u.spray.at.Prog) })
		if u.sprays(t) {
			t.Fatal("sprayed without a program")
		}
		u.repair(t, "attached weft-spray at egress of p0 again")
		u.repair(t)
		if !u.sprays(t) {
			t.Error("not sprayed after Repair")
		}
	})
	for _, what := range []string{"filter", "qdisc"} {
		t.Run("clsact "+what, func(t *testing.T) {
			kerneltest.WithoutTCX(t)
			u := newUplinkTest(t)
			u.attach(t)
			if !u.sprays(t) {
				t.Fatal("not sprayed by clsact")
			}
			u.do(t, func() error {
				if what == "qdisc" {
					return netlink.QdiscDel(kerneltest.Clsact(u.port))
				}
				filter, err := kerneltest.ClsactFilter(u.port, netlink.HANDLE_MIN_EGRESS, "weft-spray")
				if err != nil || filter == nil {
					t.Fatalf("filter %v, %v", filter, err)
				}
				return netlink.FilterDel(filter)
			})
			if u.sprays(t) {
				t.Fatal("sprayed without a program")
			}
			u.repair(t, "attached weft-spray at egress of p0 again")
			u.repair(t)
			if !u.sprays(t) {
				t.Error("not sprayed after Repair")
			}
		})
	}
}

// On a kernel without TCX nothing can come before clsact; a filter that does, and a
// TCX program where there is TCX after all, are named.
func TestSpray_clsactNamesWhatIsInFront(t *testing.T) {
	kerneltest.WithoutTCX(t)
	u := newUplinkTest(t)
	u.attach(t)
	end := kerneltest.ForeignProgram(t, "ends_it", kerneltest.TCXEnd)
	for _, c := range []struct {
		priority uint16
		front    bool
	}{{1, true}, {0xc000, false}} {
		u.do(t, func() error {
			return netlink.FilterAdd(&netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: u.port.Attrs().Index, Parent: netlink.HANDLE_MIN_EGRESS,
				Handle: 1, Protocol: unix.ETH_P_ALL, Priority: c.priority}, Fd: end.FD(), Name: "others", DirectAction: true})
		})
		if got := u.sprays(t); got == c.front {
			t.Errorf("priority %d: sprayed %t", c.priority, got)
		}
		all, err := u.spray.Foreign()
		if err != nil || len(all) != 1 || all[0].Name != "others" || all[0].By != "clsact" || all[0].Kind != "bpf" || all[0].Front != c.front {
			t.Errorf("priority %d: foreign %+v, %v", c.priority, all, err)
		}
		u.repair(t)
		u.do(t, func() error {
			return netlink.FilterDel(&netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: u.port.Attrs().Index, Parent: netlink.HANDLE_MIN_EGRESS,
				Handle: 1, Protocol: unix.ETH_P_ALL, Priority: c.priority}})
		})
	}
}

// Weft's own keep their order, in whichever they come.
func TestTCX_ownOrder(t *testing.T) {
	u := newUplinkTest(t)
	needTCX(t, u)
	places := []kernel.Filter{kernel.SilentFilter, kernel.SteerFilter, kernel.DecapFilter, kernel.EdgeFilter}
	programs := make(map[string]*ebpf.Program)
	for _, p := range places {
		programs[p.Name] = kerneltest.ForeignProgram(t, strings.ReplaceAll(p.Name, "-", "_"), kerneltest.TCXNext)
	}
	others := kerneltest.ForeignProgram(t, "others", kerneltest.TCXNext)
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}} {
		u.do(t, func() error {
			h, err := netlink.NewHandle(kernel.Families...)
			if err != nil {
				return err
			}
			defer h.Close()
			kerneltest.AttachForeign(t, u.port, ebpf.AttachTCXIngress, others, link.Head())
			for _, i := range order {
				if err := places[i].Attach(h, u.port, programs[places[i].Name]); err != nil {
					return err
				}
			}
			chain, err := kerneltest.TCX(u.port, ebpf.AttachTCXIngress)
			if err != nil {
				return err
			}
			var got []string
			for _, id := range chain {
				got = append(got, kerneltest.ProgramName(t, id))
			}
			if want := []string{"weft_silent", "weft_steer", "weft_decap", "weft_edge", "others"}; !slices.Equal(got, want) {
				t.Errorf("attached as %v: %v, want %v", order, got, want)
			}
			for _, p := range places {
				if id, err := p.Program(h, u.port); err != nil || id == 0 {
					t.Errorf("%s: program %d, %v", p.Name, id, err)
				}
				if err := p.Detach(h, u.port); err != nil {
					return err
				}
			}
			return kerneltest.DetachForeign(u.port, ebpf.AttachTCXIngress, others)
		})
	}
}
