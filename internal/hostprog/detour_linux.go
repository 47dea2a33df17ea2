package hostprog

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package hostprog -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb detour bpf/detour.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// DetourConfig says how packets bypass a TUN whose reader hangs.
type DetourConfig struct {
	TUN    string // a device without Ethernet headers
	Uplink string // an Ethernet device, from which packets leave instead

	// Gateway is the next hop there of IPv4, Gateway6 that of IPv6. The zero value means the
	// routing table's next hop for routes out of the uplink; if there is none, the packet is
	// lost.
	Gateway, Gateway6 netip.Addr

	// Patience is how long the reader may be silent, from 1 ms to an hour.
	Patience time.Duration
}

// DetourStats counts the packets that came to a TUN while its reader was silent,
// since the program was attached.
type DetourStats struct {
	Detoured uint64 `json:"detoured"` // sent by the uplink; super-segments count as their segments
	Stuck    uint64 `json:"stuck"`    // sent into the TUN, since the kernel had no room for the other header
}

// Detour is the program attached to a TUN's egress. Methods are safe for concurrent
// use.
type Detour struct{ program }

var (
	errDetourClosed = errors.New("detour: closed")
	detourKind      = kind{name: "detour", device: "TUN", place: kernel.DetourFilter, closed: errDetourClosed}
)

// AttachDetour makes the kernel send packets for a TUN out of an uplink instead, by the
// uplink's routes, while the TUN's reader does not Beat. So the kernel's connections
// continue when the process that reads the TUN hangs. Packets already in the TUN's queue
// wait there. The packets are as the kernel made them, with
// super-segments whole; the programs at the uplink's egress see them.
//
// Before the first Beat all packets take the uplink. The namespace is the calling
// thread's. The program ends with the TUN. Attaching again replaces it. It needs
// CAP_NET_ADMIN, CAP_BPF and Linux 5.15.
func AttachDetour(cfg DetourConfig) (*Detour, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("detour: %w", err)
	}
	d := &Detour{}
	if err := d.open(detourKind, cfg.TUN, func() error { return d.attach(cfg) }); err != nil {
		return nil, err
	}
	return d, nil
}

func (c DetourConfig) check() error {
	if c.Gateway.IsValid() && !c.Gateway.Unmap().Is4() {
		return fmt.Errorf("Gateway: %v is not IPv4", c.Gateway)
	}
	if c.Gateway6.IsValid() && (!c.Gateway6.Is6() || c.Gateway6.Is4In6()) {
		return fmt.Errorf("Gateway6: %v is not IPv6", c.Gateway6)
	}
	if c.Patience < time.Millisecond || c.Patience > maxPatience {
		return fmt.Errorf("Patience is %v, must be from 1ms to %v", c.Patience, maxPatience)
	}
	return nil
}

func (d *Detour) attach(cfg DetourConfig) (err error) {
	if d.other, err = kernel.Uplink(d.handle, cfg.Uplink); err != nil {
		return err
	}
	links, err := kernel.Links(d.handle, []string{cfg.TUN})
	if err != nil {
		return err
	}
	if kind := links[0].Attrs().EncapType; kind == "ether" {
		return errors.New("frames are of type ether; a device without Ethernet headers is needed (IFF_TUN)")
	}
	if err := d.load(cfg, links[0]); err != nil {
		return err
	}
	return d.at.Attach(d.handle)
}

func (d *Detour) load(cfg DetourConfig, tun netlink.Link) error {
	spec, err := loadDetour()
	if err != nil {
		return err
	}
	var next [4]byte
	if cfg.Gateway.IsValid() {
		next = cfg.Gateway.Unmap().As4()
	}
	var next6 [16]byte
	if cfg.Gateway6.IsValid() {
		next6 = cfg.Gateway6.As16()
	}
	err = errors.Join(setPatience(spec, cfg.Patience),
		spec.Variables[detourVarUplink].Set(uint32(d.other.Attrs().Index)),
		spec.Variables[detourVarGateway].Set(binary.NativeEndian.Uint32(next[:])),
		spec.Variables[detourVarGateway6].Set(next6))
	if err != nil {
		return err
	}
	var objects struct {
		WeftDetour *ebpf.Program  `ebpf:"weft_detour"`
		Counters   *ebpf.Map      `ebpf:"counters"`
		Heartbeat  *ebpf.Variable `ebpf:"heartbeat"`
	}
	if err := kernel.Load(spec, &objects, kernel.TCNeeds); err != nil {
		return err
	}
	return d.own(tun, objects.WeftDetour, objects.Counters, objects.Heartbeat)
}

// Stats returns the counters.
func (d *Detour) Stats() (s DetourStats, err error) {
	err = d.use(func() error {
		return kernel.SumCounters(d.counts, &s.Detoured, &s.Stuck) // the order of the enum in bpf/detour.c
	})
	return s, err
}
