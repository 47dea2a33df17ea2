package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

// Filter is a place for one of weft's programs among those of a device's ingress or egress.
// A program there outlives the process, with its maps. A later process finds it by the
// place's name.
//
// The kernel has two chains at each of the two hooks. TCX (Linux 6.6, tcx_linux.go) comes
// first, and a program in it that ends the chain hides all of clsact (clsact_linux.go). So
// weft uses TCX where there is one. A program that a former weft has left in clsact is
// replaced. While both are there for a moment, each leaves alone packets that the other has
// handled.
//
// TCX means the network namespace of the calling thread. So the methods must be
// called in the one that h is of.
type Filter struct {
	Name     string
	parent   uint32 // netlink.HANDLE_MIN_INGRESS or HANDLE_MIN_EGRESS
	priority uint16 // lower ones run first
}

// Other filters are unlikely to have these priorities, so that weft's replace
// only weft's. Steering looks at packets as they came in, as packet sockets do,
// so it runs before decapsulation. CONGA's marks are taken in and off even before that, as
// steering keeps packets from all that follows. A lab's silent failure comes before
// everything.
var (
	SilentFilter = Filter{"weft-silent", netlink.HANDLE_MIN_INGRESS, 0x5742}
	HeedFilter   = Filter{"weft-heed", netlink.HANDLE_MIN_INGRESS, 0x5743}
	SteerFilter  = Filter{"weft-steer", netlink.HANDLE_MIN_INGRESS, 0x5744}
	DecapFilter  = Filter{"weft-decap", netlink.HANDLE_MIN_INGRESS, 0x5745}
	SprayFilter  = Filter{"weft-spray", netlink.HANDLE_MIN_EGRESS, 0x5746}
	DetourFilter = Filter{"weft-detour", netlink.HANDLE_MIN_EGRESS, 0x574a}
)

// weftFilters are all, by whose names weft's programs are known from others'.
var weftFilters = []Filter{SilentFilter, HeedFilter, SteerFilter, DecapFilter, EdgeFilter, SprayFilter, MeterFilter, ClassFilter, DetourFilter, SuffixFilter, ClassifyFilter, BalanceFilter, QueueFilter}

// Attach puts a program there, in place of the one that is there.
func (f Filter) Attach(h *netlink.Handle, port netlink.Link, prog *ebpf.Program) error {
	former, err := f.inClsact(h, port)
	if err != nil {
		return err
	}
	err = f.attachTCX(port, prog)
	if errors.Is(err, errNoTCX) {
		return f.attachClsact(h, port, prog)
	}
	if err == nil && former != nil {
		err = f.detachClsact(h, port)
	}
	return err
}

// Program returns the ID of the program there, 0 if there is none.
func (f Filter) Program(h *netlink.Handle, port netlink.Link) (ebpf.ProgramID, error) {
	id, _, err := f.locate(h, port)
	return id, err
}

// locate is program, and says whether it is where attach would put it.
func (f Filter) locate(h *netlink.Handle, port netlink.Link) (id ebpf.ProgramID, placed bool, err error) {
	chain, err := f.chain(port)
	hasTCX := !errors.Is(err, errNoTCX)
	if err != nil && hasTCX {
		return 0, false, err
	}
	if id = chain.find(f); id != 0 {
		return id, len(chain.foreign(f, id)) == 0, nil
	}
	filter, err := f.inClsact(h, port)
	if err != nil || filter == nil {
		return 0, false, err
	}
	return ebpf.ProgramID(filter.Id), !hasTCX, nil
}

// Find returns the program that is attached to ports already, or nil, and the
// indexes of the ports that have it. One of another version than spec's counts as
// absent.
func (f Filter) Find(h *netlink.Handle, ports []netlink.Link, spec *ebpf.ProgramSpec) (*ebpf.Program, map[int]bool, error) {
	have := make(map[int]bool)
	var first ebpf.ProgramID
	for _, port := range ports {
		id, placed, err := f.locate(h, port)
		if err != nil {
			return nil, nil, err
		}
		if id != 0 && first == 0 {
			first = id
		}
		have[port.Attrs().Index] = id != 0 && id == first && placed
	}
	if first == 0 {
		return nil, have, nil
	}
	prog, err := openProgram(first)
	if err != nil {
		return nil, nil, err
	}
	info, err := prog.Info()
	if err != nil {
		prog.Close()
		return nil, nil, Explain(err)
	}
	if spec.Compatible(info) != nil {
		prog.Close()
		return nil, map[int]bool{}, nil
	}
	return prog, have, nil
}

// Detach removes the program there, if any, and the clsact qdisc if weft has made it and
// nobody uses it.
func (f Filter) Detach(h *netlink.Handle, port netlink.Link) error {
	err := f.detachTCX(port)
	if err != nil && !errors.Is(err, errNoTCX) {
		return fmt.Errorf("remove %s from %s: %w", f.Name, port.Attrs().Name, Explain(err))
	}
	filter, err := f.inClsact(h, port)
	if err != nil || filter == nil {
		return err
	}
	return f.detachClsact(h, port)
}

// DetachAll removes the filter from ports, as far as they exist and have it. An error at one
// does not keep it from the others.
func (f Filter) DetachAll(h *netlink.Handle, ports []netlink.Link) (changed int, err error) {
	for _, port := range ports {
		id, e := f.Program(h, port)
		if e == nil && id != 0 {
			if e = f.Detach(h, port); e == nil {
				changed++
			}
		}
		if !errors.Is(e, ErrUplinkGone) {
			err = errors.Join(err, e)
		}
	}
	return changed, err
}

// AttachAll puts a program on the ports that do not have it yet.
func (f Filter) AttachAll(h *netlink.Handle, ports []netlink.Link, prog *ebpf.Program, have map[int]bool) (changed int, err error) {
	for _, port := range ports {
		if have[port.Attrs().Index] {
			continue
		}
		if err := f.Attach(h, port, prog); err != nil {
			return changed, fmt.Errorf("port %s: %w", port.Attrs().Name, err)
		}
		changed++
	}
	return changed, nil
}

// EdgeFilter may be anywhere before the routes: no other filter of a switch looks at
// incoming packets with labels.
var EdgeFilter = Filter{"weft-edge", netlink.HANDLE_MIN_INGRESS, 0x5748}

// MeterFilter comes behind a host's spraying if a device has both: the queue holds
// encapsulated packets.
var MeterFilter = Filter{"weft-meter", netlink.HANDLE_MIN_EGRESS, 0x5747}

// ClassFilter is at the egress of the ports of a switch that forwards IPv6, before the
// queue.
var ClassFilter = Filter{"weft-class", netlink.HANDLE_MIN_EGRESS, 0x5749}

// SuffixFilter comes behind decapsulation: the inner destination's host ID counts.
var SuffixFilter = Filter{"weft-suffix", netlink.HANDLE_MIN_INGRESS, 0x574d}

// ClassifyFilter comes behind SuffixFilter, whose marks it replaces.
var ClassifyFilter = Filter{"weft-classify", netlink.HANDLE_MIN_INGRESS, 0x574e}

// BalanceFilter comes behind decapsulation and what marks packets: it looks at the packet
// that is routed, and leaves alone one with a mark.
var BalanceFilter = Filter{"weft-balance", netlink.HANDLE_MIN_INGRESS, 0x574f}

// QueueFilter is at the egress of the same ports.
var QueueFilter = Filter{"weft-queue", netlink.HANDLE_MIN_EGRESS, 0x574c}
