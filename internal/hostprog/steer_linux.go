package hostprog

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package hostprog -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb steer bpf/steer.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"

	"weft/internal/kernel"
)

// SteerPatience is how long a reader may be silent before the kernel gets its packets,
// incoming (Steer) and outgoing ones (DetourConfig.Patience). TCP sends again after 0.2 s
// and, if that is lost, after 0.6 s: by then the kernel has the packets. A reader beats
// every 100 ms, and every 200 ms at least.
const SteerPatience = 300 * time.Millisecond

// SteerConfig says which packets a reader takes from the kernel.
type SteerConfig struct {
	Uplink string // an Ethernet device
	Rules  []SteerRule
	Behind []netip.Prefix // behind this host, whose TCP a reader takes, too; at most 16
}

// SteerStats counts the packets that rules match, since the program was attached. A
// super-segment counts as its segments.
type SteerStats struct {
	Seen       uint64 `json:"seen"`        // all incoming packets, of all protocols; a super-segment counts as one
	Taken      uint64 `json:"taken"`       // kept from the kernel
	PassedDead uint64 `json:"passed_dead"` // left to the kernel, because the reader was silent
}

// Steer is the program attached to an uplink's ingress. Methods are safe for
// concurrent use.
type Steer struct {
	program
	filter []bpf.RawInstruction
}

var (
	errSteerClosed = errors.New("steer: closed")
	steerKind      = kind{name: "steer", device: "uplink", place: kernel.SteerFilter, closed: errSteerClosed, forgets: true}
)

// AttachSteer keeps packets that come in by an uplink, in the network namespace of the
// calling thread, from the kernel. They are for a reader with a packet socket, which sees
// packets first, with super-segments whole. The kernel has checked nothing at that point,
// not even the IP header's checksum.
//
// It takes nothing before the first Beat, nor if Beat was not called for SteerPatience,
// so that a dead reader does not take the host off the network. Attach, open the socket
// with Filter, then Beat. Attaching again replaces the program and its rules. It needs
// CAP_NET_ADMIN, CAP_BPF and Linux 5.15. To find a program that a crash has left it also
// needs CAP_SYS_ADMIN, as AttachSpray does.
//
// If the uplink merges super-segments of more than 64 KB (BIG TCP), which have no length
// in their IP header, it lowers the uplink's gro_ipv4_max_size and, with rules for IPv6,
// gro_max_size.
func AttachSteer(cfg SteerConfig) (*Steer, error) {
	if err := checkSteerRules(cfg.Rules); err != nil {
		return nil, fmt.Errorf("steer: %w", err)
	}
	if n := len(cfg.Behind); n > maxSteered {
		return nil, fmt.Errorf("steer: %d prefixes are behind this host, must be at most %d where all TCP passes through a reader; join neighbours to wider ones", n, maxSteered)
	}
	s := &Steer{}
	if err := s.open(steerKind, cfg.Uplink, func() error { return s.attach(cfg) }); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Steer) attach(cfg SteerConfig) (err error) {
	if s.filter, err = bpf.Assemble(steerProgram(cfg.Rules, cfg.Behind...)); err != nil {
		return fmt.Errorf("socket filter: %w", err)
	}
	link, err := kernel.Uplink(s.handle, cfg.Uplink)
	if err != nil {
		return err
	}
	if err := s.load(cfg, link); err != nil {
		return err
	}
	want := kernel.Wanted{kernel.GROSize: kernel.MaxSuper}
	if slices.ContainsFunc(cfg.Rules, func(r SteerRule) bool { return r.Address.Unmap().Is6() }) {
		want[kernel.GROSize6] = kernel.MaxSuper
	}
	return s.attachWith(want)
}

func (s *Steer) load(cfg SteerConfig, link netlink.Link) error {
	spec, err := loadSteer()
	if err != nil {
		return err
	}
	if err := setPatience(spec, SteerPatience); err != nil {
		return err
	}
	spec.Maps[steerMapBehind].MaxEntries = maxSteered
	var objects struct {
		WeftSteer *ebpf.Program  `ebpf:"weft_steer"`
		Behind    *ebpf.Map      `ebpf:"behind"`
		Steered   *ebpf.Map      `ebpf:"steered"`
		Steered6  *ebpf.Map      `ebpf:"steered6"`
		Counters  *ebpf.Map      `ebpf:"counters"`
		Heartbeat *ebpf.Variable `ebpf:"heartbeat"`
	}
	if err := kernel.Load(spec, &objects, kernel.TCNeeds); err != nil {
		return err
	}
	defer objects.Behind.Close()
	defer objects.Steered.Close()
	defer objects.Steered6.Close()
	if err := s.own(link, objects.WeftSteer, objects.Counters, objects.Heartbeat); err != nil {
		return err
	}
	if err := putBehind(objects.Behind, cfg.Behind, ownBehind); err != nil {
		return err
	}
	for _, r := range cfg.Rules {
		into, a := objects.Steered, r.Address.Unmap()
		if a.Is6() {
			into = objects.Steered6
		}
		if err := into.Put(a.AsSlice(), uint8(r.What)); err != nil {
			return fmt.Errorf("address %v: %w", r.Address, err)
		}
	}
	return nil
}

// Filter returns the classic BPF program (SO_ATTACH_FILTER) for the reader's socket. The
// socket must be of type SOCK_RAW, since offsets count from the Ethernet header, and for
// ETH_P_ALL, since a socket for IP alone sees only what the kernel gets. The filter
// passes exactly the packets that the attached program takes. link.PacketConfig takes it
// unchanged. The caller owns the slice.
func (s *Steer) Filter() []bpf.RawInstruction { return slices.Clone(s.filter) }

// Stats returns the counters.
func (s *Steer) Stats() (st SteerStats, err error) {
	err = s.use(func() error {
		// The order of the enum in bpf/steer.c.
		return kernel.SumCounters(s.counts, &st.Taken, &st.PassedDead, &st.Seen)
	})
	return st, err
}

// DetachSteer removes the program from an uplink in the network namespace of the
// calling thread, whoever attached it, also after a crash. removed is how many there were.
func DetachSteer(uplink string) (removed int, err error) {
	did, err := steerKind.detach(uplink)
	if did {
		removed = 1
	}
	return removed, err
}
