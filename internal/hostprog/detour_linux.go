package hostprog

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package hostprog -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb detour bpf/detour.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// DetourConfig says how packets pass a TUN whose reader hangs.
type DetourConfig struct {
	TUN    string // a device without Ethernet headers
	Uplink string // an Ethernet device, from which packets leave instead

	// Gateway is the next hop there, IPv4. The zero value means the routing table's next
	// hop for routes out of the uplink; without one the packet is lost.
	Gateway netip.Addr

	// Patience is how long the reader may be silent, from 1 ms to an hour.
	Patience time.Duration
}

// DetourStats are the IPv4 packets that came to a TUN while its reader was silent,
// since the program was attached.
type DetourStats struct {
	Detoured uint64 `json:"detoured"` // super-segments as their segments
	Stuck    uint64 `json:"stuck"`    // went into the TUN all the same: the kernel had no room for the other header
}

// Detour is the program attached to a TUN's egress. Methods are safe for concurrent
// use.
type Detour struct {
	home   kernel.Home
	heart  heart
	counts *ebpf.Map
	uplink netlink.Link

	mu     sync.Mutex
	handle *netlink.Handle // nil: closed
	at     kernel.Attachment
}

var errDetourClosed = errors.New("detour: closed")

// AttachDetour makes the kernel send packets that are routed into a TUN out of an uplink
// instead, by the uplink's routes, while the TUN's reader does not Beat. So the kernel's
// connections go on when the process that reads the TUN hangs. Packets already in the TUN's
// queue wait there. IPv6 is left alone. Packets are as the kernel made them, super-segments
// whole; the programs at the uplink's egress see them.
//
// Before the first Beat all packets go that way. The namespace is the calling
// thread's. The program ends with the TUN. Attaching again replaces it. It needs
// CAP_NET_ADMIN, CAP_BPF and Linux 5.15.
func AttachDetour(cfg DetourConfig) (*Detour, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("detour: %w", err)
	}
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("detour: %w", err))
	}
	d := &Detour{handle: h}
	if err := d.attach(cfg); err != nil {
		d.release()
		return nil, fmt.Errorf("detour: TUN %s: %w", cfg.TUN, err)
	}
	return d, nil
}

func (c DetourConfig) check() error {
	if c.Gateway.IsValid() && !c.Gateway.Unmap().Is4() {
		return fmt.Errorf("Gateway: %v is not IPv4", c.Gateway)
	}
	if c.Patience < time.Millisecond || c.Patience > maxPatience {
		return fmt.Errorf("Patience is %v, must be from 1ms to %v", c.Patience, maxPatience)
	}
	return nil
}

func (d *Detour) attach(cfg DetourConfig) (err error) {
	if d.home, err = kernel.OpenHome(); err != nil {
		return err
	}
	if d.uplink, err = kernel.Uplink(d.handle, cfg.Uplink); err != nil {
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
	err = errors.Join(setPatience(spec, cfg.Patience),
		spec.Variables[detourVarUplink].Set(uint32(d.uplink.Attrs().Index)),
		spec.Variables[detourVarGateway].Set(binary.NativeEndian.Uint32(next[:])))
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
	d.counts = objects.Counters
	d.heart.open(objects.Heartbeat)
	d.at, err = kernel.NewAttachment(kernel.DetourFilter, tun, objects.WeftDetour)
	return err
}

// Beat says that the TUN's reader reads. Call it at least four times as often as
// Patience. It waits for no other method, and makes no system call that a process
// without privileges might be refused.
func (d *Detour) Beat() error { return d.heart.beat(errDetourClosed) }

// Repair is Offload.Repair for the program at the TUN. ErrUplinkGone says that either
// device does not exist any more.
func (d *Detour) Repair() (mended []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handle == nil {
		return nil, errDetourClosed
	}
	err = d.home.Do(func() error {
		if mended, err = d.at.Mend(d.handle, time.Now()); err == nil {
			_, err = kernel.AttrsOf(d.handle, d.uplink)
		}
		return err
	})
	if err != nil {
		return mended, fmt.Errorf("detour: %w", err)
	}
	return mended, nil
}

// Stats returns the counters.
func (d *Detour) Stats() (s DetourStats, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handle == nil {
		return s, errDetourClosed
	}
	err = kernel.SumCounters(d.counts, &s.Detoured, &s.Stuck) // the order of the enum in bpf/detour.c
	return s, err
}

// Close detaches the program, unless another AttachDetour has replaced it since. Later
// calls do nothing.
func (d *Detour) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handle == nil {
		return nil
	}
	defer d.release()
	err := d.home.Do(func() error {
		_, err := d.at.Detach(d.handle)
		return err
	})
	if err != nil {
		return fmt.Errorf("detour: %w", err)
	}
	return nil
}

func (d *Detour) release() {
	d.heart.close()
	d.handle.Close()
	d.handle = nil
	d.home.Close()
	d.at.Release()
	d.counts.Close()
}
