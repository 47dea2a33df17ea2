package hostprog

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package hostprog -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb spray bpf/spray.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/topology"
)

// Offload is the program attached to a host's uplink. Methods are safe for
// concurrent use.
type Offload struct {
	home     kernel.Home
	heart    heart
	patience time.Duration
	require  bool

	counts, bounces *ebpf.Map
	switches        map[pathWord]netip.Addr // of bounces

	mu       sync.Mutex
	handle   *netlink.Handle // nil: closed
	at       kernel.Attachment
	settings *kernel.Settings // of the uplink
	ways     *ways
	drawn    drawn
}

var errOffloadClosed = errors.New("offload: closed")

// AttachOffload sprays packets that leave by an uplink in the network namespace
// of the calling thread. It puts a program at tc egress that encapsulates the
// packets of this host's own addresses to other racks of the fabric. Routes into
// the fabric should have an MTU that is less than the uplink's by the carrier's
// overhead: packets that do not fit leave as they are.
//
// The program comes before those of others, by TCX, if the kernel has that (Linux 6.6);
// Repair keeps it there. If the process ends without Close, it goes on with its last table
// for OffloadConfig.Patience. Attaching again replaces it, misses no packet, and starts its
// counters anew. It lowers the uplink's gso_ipv4_max_size to 64 KB and, with
// OffloadConfig.Cut, to a flowcell.
//
// It needs CAP_NET_ADMIN and CAP_BPF, to replace that of another process also
// CAP_SYS_ADMIN, and Linux 5.15. With TCX and without CAP_SYS_ADMIN it does not find a
// program that a crash has left: call DetachOffload before.
func AttachOffload(cfg OffloadConfig) (*Offload, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("offload: %w", err)
	}
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("offload: %w", err))
	}
	o := &Offload{handle: h, patience: cfg.Patience, require: cfg.Require}
	if err := o.attach(cfg); err != nil {
		o.release()
		return nil, fmt.Errorf("offload: uplink %s: %w", cfg.Uplink, err)
	}
	return o, nil
}

func (o *Offload) attach(cfg OffloadConfig) (err error) {
	if o.home, err = kernel.OpenHome(); err != nil {
		return err
	}
	link, err := kernel.Uplink(o.handle, cfg.Uplink)
	if err != nil {
		return err
	}
	if err := o.load(cfg, link); err != nil {
		return err
	}
	if err := o.ways.change(cfg.Topology); err != nil {
		return err
	}
	former, err := kernel.SprayFilter.FormerSettings(o.handle, link)
	if err != nil {
		return err
	}
	// The record is with the program before anything is changed.
	o.settings = cfg.settings().Plan(link, former)
	if err := o.settings.Bind(o.at.Prog); err != nil {
		return err
	}
	if err := o.at.Attach(o.handle); err != nil {
		return err
	}
	if err := o.settings.Apply(o.handle, link, former); err != nil {
		_, err2 := o.at.Detach(o.handle)
		return errors.Join(err, err2)
	}
	return nil
}

// settings are those that the uplink must have.
func (c OffloadConfig) settings() (w kernel.Wanted) {
	if c.PerPacketTCP {
		w[kernel.GSOSegments] = 1
	}
	w[kernel.GSOSize] = kernel.MaxSuper
	if len(c.Cut) > 0 {
		w[kernel.GSOSize] = uint32(max(minSuper, min(c.Policy.Unit.Bytes, kernel.MaxSuper)))
	}
	return w
}

// minSuper is the lowest limit on super-segments, in bytes: some packets.
const minSuper = 4096

// load makes program and maps, with a counter for each bouncing switch.
func (o *Offload) load(cfg OffloadConfig, link netlink.Link) error {
	spec, err := loadSpray()
	if err != nil {
		return err
	}
	if o.ways, err = newWays(cfg.Topology, cfg.Self, cfg.Policy, cfg.Carrier); err != nil {
		return err
	}
	if cfg.StartPlain {
		o.ways.startPlain()
	}
	if err := setPatience(spec, cfg.Patience); err != nil {
		return err
	}
	if err := spec.Variables[sprayVarRequire].Set(cfg.Require); err != nil {
		return err
	}
	o.switches = bouncesOf(o.ways.all)
	spec.Maps[sprayMapBounces].MaxEntries = uint32(max(1, len(o.switches)))
	o.ways.size(spec)
	if len(cfg.Cut) == 0 && o.ways.known.how.mode != sprayDrawn {
		spec.Maps[sprayMapFlows].MaxEntries = 1
	}
	var objects struct {
		WeftSpray *ebpf.Program  `ebpf:"weft_spray"`
		Own       *ebpf.Map      `ebpf:"own"`
		Racks     *ebpf.Map      `ebpf:"racks"`
		Groups    *ebpf.Map      `ebpf:"groups"`
		Counters  *ebpf.Map      `ebpf:"counters"`
		Bounces   *ebpf.Map      `ebpf:"bounces"`
		Choices   *ebpf.Map      `ebpf:"choices"`
		Active    *ebpf.Map      `ebpf:"active"`
		Heartbeat *ebpf.Variable `ebpf:"heartbeat"`
	}
	if err := kernel.Load(spec, &objects, kernel.TCNeeds); err != nil {
		return err
	}
	defer objects.Own.Close()
	o.counts, o.bounces = objects.Counters, objects.Bounces
	o.ways.racks, o.ways.groups = objects.Racks, objects.Groups
	o.drawn = drawn{choices: objects.Choices, active: objects.Active}
	o.heart.open(objects.Heartbeat)
	if o.at, err = kernel.NewAttachment(kernel.SprayFilter, link, objects.WeftSpray); err != nil {
		return err
	}
	for _, a := range cfg.Addresses {
		if err := objects.Own.Put(a.Unmap().As4(), cfg.cuts(a)); err != nil {
			return fmt.Errorf("own address %v: %w", a, err)
		}
	}
	zero := make([]bounceValue, ebpf.MustPossibleCPU())
	for word, a := range o.switches {
		if err := o.bounces.Put(word, zero); err != nil {
			return fmt.Errorf("counter of %v: %w", a, err)
		}
	}
	return nil
}

// SetTopology takes paths out of use or back into use. t is the topology of AttachOffload
// with other links down. Each packet goes by the old ways or by the new ones; when
// SetTopology returns, by the new ones. The cost grows with the racks whose paths have
// changed.
func (o *Offload) SetTopology(t *topology.Topology) error {
	if t == nil {
		return errors.New("offload: SetTopology: no topology")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.handle == nil {
		return errOffloadClosed
	}
	if err := o.ways.change(t); err != nil {
		return fmt.Errorf("offload: SetTopology: %w", err)
	}
	return nil
}

// Close detaches the program and restores what was set at the uplink, unless
// another AttachOffload has replaced it since. The uplink's packets then follow
// the routing table. Later calls do nothing.
func (o *Offload) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.handle == nil {
		return nil
	}
	defer o.release()
	err := o.home.Do(func() error {
		was, err := o.at.Detach(o.handle)
		if err != nil || !was {
			return err
		}
		return o.settings.Restore(o.handle, o.at.Link)
	})
	if err != nil {
		return fmt.Errorf("offload: %w", err)
	}
	return nil
}

// release lets go of what the Offload holds, not of what the kernel holds.
func (o *Offload) release() {
	o.heart.close()
	o.handle.Close()
	o.handle = nil
	o.home.Close()
	o.at.Release()
	o.settings.Close()
	o.counts.Close()
	o.bounces.Close()
	o.drawn.close()
	if o.ways != nil {
		o.ways.close()
	}
}

// DetachOffload removes the program from an uplink in the network namespace of
// the calling thread and restores what was set there, whoever attached it, also
// after a crash. removed is false if there is none. It needs CAP_SYS_ADMIN to
// read the former settings.
func DetachOffload(uplink string) (removed bool, err error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return false, kernel.Explain(err)
	}
	defer h.Close()
	links, err := kernel.Links(h, []string{uplink})
	if err != nil {
		return false, fmt.Errorf("offload: %w", err)
	}
	id, err := kernel.SprayFilter.Program(h, links[0])
	if err != nil || id == 0 {
		return false, err
	}
	// Whatever the record is worth, the program must go.
	former, err := kernel.SettingsOf(id)
	if err2 := kernel.SprayFilter.Detach(h, links[0]); err2 != nil {
		return false, fmt.Errorf("offload: %w", errors.Join(err2, err))
	}
	if err == nil {
		err = former.Restore(h, links[0])
	}
	if err != nil {
		return true, fmt.Errorf("offload: removed, but settings not restored: %w", err)
	}
	return true, nil
}
