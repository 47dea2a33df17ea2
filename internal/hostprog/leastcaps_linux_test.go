package hostprog

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"weft/internal/elephant"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// repairUnnamed repairs a Spray behind a program whose name this process may not
// read.
func repairUnnamed(o *Spray, end *ebpf.Program) error { return repairBehind(o, end, "") }

// repairBehind repairs a Spray behind a program, which it must call by a name.
func repairBehind(o *Spray, end *ebpf.Program, name string) error {
	if _, err := kerneltest.TCX(o.at.Link, ebpf.AttachTCXEgress); errors.Is(err, kerneltest.ErrNoTCX) {
		return nil
	}
	opts := link.RawAttachProgramOptions{Target: o.at.Link.Attrs().Index, Program: end, Attach: ebpf.AttachTCXEgress, Anchor: link.Head()}
	if err := link.RawAttachProgram(opts); err != nil {
		return err
	}
	all, err := o.Foreign()
	if err != nil || len(all) != 1 || all[0].Name != name || !all[0].Front {
		return fmt.Errorf("foreign %+v, %w", all, err)
	}
	if mended, err := o.Repair(); err != nil || len(mended) != 1 || !strings.Contains(mended[0], name) {
		return fmt.Errorf("mended %q, %w", mended, err)
	}
	return link.RawDetachProgram(link.RawDetachProgramOptions{Target: opts.Target, Program: end, Attach: opts.Attach})
}

func attachOrderAndClose() error {
	o, err := AttachOrder(OrderConfig{Uplink: "p0", Addresses: []netip.Addr{orderTo}})
	if err != nil {
		return err
	}
	_, err = o.Stats()
	return errors.Join(err, o.Beat(), o.Close())
}

// countAndPin attaches the program with all that it does for a scheduler.
func countAndPin(cfg SprayConfig) error {
	o, err := AttachSpray(cfg)
	if err != nil {
		return err
	}
	_, err1 := o.FlowCounts(nil)
	_, err2 := o.Elephants()
	dst := cfg.Topology.Node(topology.NodeID(cfg.Topology.NumHosts() - 1)).Addr
	flow := elephant.Flow{Src: netip.AddrPortFrom(cfg.Addresses[0], 1), Dst: netip.AddrPortFrom(dst, 2), Protocol: elephant.TCP}
	return errors.Join(err1, err2, o.SetPins([]PathPin{{flow, 1, 1}}), o.SetPins(nil), o.Close())
}

// A daemon needs no more than these to attach, change and close.
func TestSprayAndSteer_leastCapabilities(t *testing.T) {
	ns := kerneltest.Namespace(t, "caps")
	kerneltest.EthernetPair(t, ns, "p0", "p1")
	kerneltest.Shell(t, ns, "ip tuntap add tun0 mode tun && ip link set tun0 up")
	top := kerneltest.Topology(t, "fat-tree:k=4")
	cfg := SprayConfig{Uplink: "p0", Addresses: []netip.Addr{top.Node(0).Addr}, Topology: top,
		Policy: mustPolicy(t, "drb"), PerPacketTCP: true}
	pins := cfg
	pins.Policy, pins.PerPacketTCP, pins.Elephants = mustPolicy(t, "luopan"), false, elephant.PinAndCount
	flowlets := cfg
	flowlets.Policy, flowlets.PerPacketTCP = mustPolicy(t, "conga"), false
	end := kerneltest.ForeignProgram(t, "ends_it", kerneltest.TCXEnd)
	attachAndClose := func() error {
		o, err := AttachSpray(cfg)
		if err != nil {
			return err
		}
		s, err := AttachSteer(SteerConfig{Uplink: "p0", Rules: steered})
		if err != nil {
			return errors.Join(err, o.Close())
		}
		d, err := AttachDetour(DetourConfig{TUN: "tun0", Uplink: "p0", Gateway: netip.MustParseAddr("10.0.0.1"), Patience: time.Second})
		if err != nil {
			return errors.Join(err, o.Close(), s.Close())
		}
		_, err1 := o.Stats()
		_, err2 := s.Stats()
		heeding, err3 := AttachSpray(flowlets)
		if err3 != nil {
			return errors.Join(err3, o.Close(), s.Close())
		}
		if mended, err := heeding.Repair(); err != nil || len(mended) > 0 {
			return errors.Join(fmt.Errorf("mended %q, %w", mended, err), o.Close(), s.Close(), heeding.Close())
		}
		again, err3 := AttachSpray(cfg)
		if err3 != nil {
			return errors.Join(err3, o.Close(), s.Close(), heeding.Close())
		}
		if err := heeding.Close(); err != nil {
			return errors.Join(err, o.Close(), s.Close(), again.Close())
		}
		return errors.Join(err1, err2, d.Close(), again.SetTopology(top), s.Beat(), again.Beat(),
			again.SetPlain(func(netip.Prefix) bool { return true }), repairUnnamed(again, end), o.Close(), again.Close(), s.Close(),
			attachOrderAndClose(), countAndPin(pins))
	}
	err := kernel.InNamespace(ns, func() error {
		return kerneltest.WithCapabilities(attachAndClose, unix.CAP_NET_ADMIN, unix.CAP_BPF)
	})
	if err != nil {
		t.Error(err)
	}
	err = kernel.InNamespace(ns, func() error { return kerneltest.WithCapabilities(attachAndClose, unix.CAP_NET_ADMIN) })
	if !errors.Is(err, unix.EPERM) || !errors.As(err, new(kernel.Refused)) {
		t.Errorf("without CAP_BPF: %v; does not say what is missing", err)
	}
}

// What KeepNames has left open tells the names of others' programs to a process that may
// not read them, also of those that come later.
func TestSpray_namesOthersWithoutPrivileges(t *testing.T) {
	ns := kerneltest.Namespace(t, "names")
	kerneltest.EthernetPair(t, ns, "p0", "p1")
	top := kerneltest.Topology(t, "fat-tree:k=4")
	cfg := SprayConfig{Uplink: "p0", Addresses: []netip.Addr{top.Node(0).Addr}, Topology: top, Policy: mustPolicy(t, "drb")}
	variable, err := kernel.KeepNames()
	if err != nil {
		t.Skip(err) // a kernel that does not describe its types
	}
	name, fd, _ := strings.Cut(variable, "=")
	t.Setenv(name, fd)
	kernel.TakeNames()
	defer kernel.DropNames()
	if _, set := os.LookupEnv(name); set {
		t.Errorf("%s stays in the environment", name)
	}
	err = kernel.InNamespace(ns, func() error {
		return kerneltest.WithCapabilities(func() error {
			o, err := AttachSpray(cfg)
			if err != nil {
				return err
			}
			end := kerneltest.ForeignProgram(t, "cil_to_netdev", kerneltest.TCXEnd)
			return errors.Join(repairBehind(o, end, "cil_to_netdev"), o.Close())
		}, unix.CAP_NET_ADMIN, unix.CAP_BPF)
	})
	if err != nil {
		t.Error(err)
	}
}
