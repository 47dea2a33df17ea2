package fabric

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package fabric -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb spray bpf/spray.c -- -O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/topology"
)

// Offload is the program attached to a host's uplink. Methods are safe for
// concurrent use.
type Offload struct {
	link   netlink.Link
	id     ebpf.ProgramID
	prog   *ebpf.Program
	before knobs // the uplink's, to restore

	counts, bounces *ebpf.Map
	switches        map[pathWord]netip.Addr // of bounces

	mu     sync.Mutex
	handle *netlink.Handle // nil: closed
	ways   *ways
	drawn  drawn
}

var errOffloadClosed = errors.New("offload: closed")

// AttachOffload sprays what leaves by an uplink in the network namespace of the
// calling thread: it puts a program at tc egress that encapsulates the packets
// of this host's own addresses to other racks of the fabric. Routes into the
// fabric must have an MTU that is less than the uplink's by the carrier's
// overhead.
//
// The program goes on when the process ends without Close, by the table that it
// had last. Attaching again replaces it, without a packet between the two, and
// starts its counters anew. It needs CAP_NET_ADMIN and CAP_BPF, to replace another
// also CAP_SYS_ADMIN, and Linux 5.15.
func AttachOffload(cfg OffloadConfig) (*Offload, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("offload: %w", err)
	}
	h, err := netlink.NewHandle(netlinkFamilies...)
	if err != nil {
		return nil, explain(fmt.Errorf("offload: %w", err))
	}
	o := &Offload{handle: h}
	if err := o.attach(cfg); err != nil {
		o.release()
		return nil, fmt.Errorf("offload: uplink %s: %w", cfg.Uplink, err)
	}
	return o, nil
}

func (o *Offload) attach(cfg OffloadConfig) (err error) {
	if o.link, err = uplink(o.handle, cfg.Uplink); err != nil {
		return err
	}
	if n := o.link.Attrs().GSOIPv4MaxSize; n > maxSuper {
		return fmt.Errorf("super-segments of up to %d bytes have no length in their IP headers (BIG TCP): ip link set %s gso_ipv4_max_size %d", n, cfg.Uplink, maxSuper)
	}
	if err := o.load(cfg); err != nil {
		return err
	}
	if err := o.ways.change(cfg.Topology); err != nil {
		return err
	}
	former, err := formerKnobs(o.handle, o.link)
	if err != nil {
		return err
	}
	o.before = former
	if cfg.PerPacketTCP {
		o.before = former.updated(o.link)
	}
	// The record is with the program before anything is changed.
	if err := o.before.bind(o.prog); err != nil {
		return err
	}
	if err := sprayFilter.attach(o.handle, o.link, o.prog); err != nil {
		return err
	}
	if cfg.PerPacketTCP {
		err = setGSOMaxSegs(o.handle, o.link, 1)
	} else {
		err = former.restore(o.handle, o.link)
	}
	if err != nil {
		err = errors.Join(err, sprayFilter.detach(o.handle, o.link))
	}
	return err
}

// maxSuper is the kernel's GSO_LEGACY_MAX_SIZE, the default of devices.
const maxSuper = 65536

// load makes program and maps, with a counter for each bouncing switch.
func (o *Offload) load(cfg OffloadConfig) error {
	spec, err := loadSpray()
	if err != nil {
		return err
	}
	if o.ways, err = newWays(cfg.Topology, cfg.Self, cfg.Policy, cfg.Carrier); err != nil {
		return err
	}
	o.switches = bouncesOf(o.ways.all)
	spec.Maps[sprayMapBounces].MaxEntries = uint32(max(1, len(o.switches)))
	o.ways.size(spec)
	if len(cfg.Cut) == 0 && o.ways.known.how.mode != sprayDrawn {
		spec.Maps[sprayMapFlows].MaxEntries = 1
	}
	var objects struct {
		WeftSpray *ebpf.Program `ebpf:"weft_spray"`
		Own       *ebpf.Map     `ebpf:"own"`
		Racks     *ebpf.Map     `ebpf:"racks"`
		Groups    *ebpf.Map     `ebpf:"groups"`
		Counters  *ebpf.Map     `ebpf:"counters"`
		Bounces   *ebpf.Map     `ebpf:"bounces"`
		Choices   *ebpf.Map     `ebpf:"choices"`
		Active    *ebpf.Map     `ebpf:"active"`
	}
	if err := loadObjects(spec, &objects, tcNeeds); err != nil {
		return err
	}
	defer objects.Own.Close()
	o.prog, o.counts, o.bounces = objects.WeftSpray, objects.Counters, objects.Bounces
	o.ways.racks, o.ways.groups = objects.Racks, objects.Groups
	o.drawn = drawn{choices: objects.Choices, active: objects.Active}
	if o.id, err = programID(o.prog); err != nil {
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

// SetTopology takes paths out of use or back, links of the topology that the
// Offload was attached with having gone down or up. Each packet is sent by the
// ways before or by those after; when SetTopology returns, by the latter. The cost
// is that of the racks to which the ways have changed.
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
// another AttachOffload has replaced it since. The uplink's packets then go as
// the routing table has them. Later calls do nothing.
func (o *Offload) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.handle == nil {
		return nil
	}
	defer o.release()
	id, err := sprayFilter.program(o.handle, o.link)
	if err != nil || id != o.id {
		return err
	}
	if err := sprayFilter.detach(o.handle, o.link); err != nil {
		return fmt.Errorf("offload: %w", err)
	}
	if err := o.before.restore(o.handle, o.link); err != nil {
		return fmt.Errorf("offload: %w", err)
	}
	return nil
}

// release lets go of what the Offload holds, not of what the kernel holds.
func (o *Offload) release() {
	o.handle.Close()
	o.handle = nil
	o.prog.Close()
	o.counts.Close()
	o.bounces.Close()
	o.drawn.close()
	if o.ways != nil {
		o.ways.close()
	}
}

// DetachOffload removes the program from an uplink in the network namespace of
// the calling thread and restores what was set there, whoever attached it: that
// is what a crash leaves. removed is false if there is none. To read what was
// set it needs CAP_SYS_ADMIN.
func DetachOffload(uplink string) (removed bool, err error) {
	h, err := netlink.NewHandle(netlinkFamilies...)
	if err != nil {
		return false, explain(err)
	}
	defer h.Close()
	links, err := portLinks(h, []string{uplink})
	if err != nil {
		return false, fmt.Errorf("offload: %w", err)
	}
	id, err := sprayFilter.program(h, links[0])
	if err != nil || id == 0 {
		return false, err
	}
	// Whatever the record is worth, the program must go.
	former, err := knobsOf(id)
	if err2 := sprayFilter.detach(h, links[0]); err2 != nil {
		return false, fmt.Errorf("offload: %w", errors.Join(err2, err))
	}
	if err == nil {
		err = former.restore(h, links[0])
	}
	if err != nil {
		return true, fmt.Errorf("offload: removed, but settings not restored: %w", err)
	}
	return true, nil
}
