package hostprog

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package hostprog -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb spray bpf/spray.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"errors"
	"fmt"
	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"io"
	"maps"
	"net/netip"
	"time"

	"weft/conga"
	"weft/internal/kernel"
	"weft/topology"
)

// Spray is the program attached to a host's uplink. Methods are safe for
// concurrent use.
type Spray struct {
	program
	require  bool
	twins    []*program // the same at the host's other uplinks, and what heeds marks at all
	peers    *ebpf.Map  // of CONGA, and what it goes by
	local    *ebpf.Map
	conga    conga.Config
	uplinks  []Uplink // SprayConfig.Uplinks
	bounces  *ebpf.Map
	switches map[pathWord]netip.Addr // of bounces
	ends     map[pathWord]end        // of these, where outer headers lead whose addresses are not the words

	ways  *ways
	ways6 *ways // nil: IPv6 leaves as it is
	drawn drawn
	short string // why super-segments are shorter than configured
	usual uint32 // how long they are without SprayConfig.SuperBytes

	cutter   cutter         // of SprayConfig.CutLate
	cutterAt *ebpf.Variable // where the program reads its index
}

var (
	errSprayClosed = errors.New("spray: closed")
	sprayKind      = kind{name: "spray", device: "uplink", place: kernel.SprayFilter, closed: errSprayClosed}
)

// AttachSpray sprays packets that leave by an uplink in the network namespace of the
// calling thread. It puts a program at tc egress that encapsulates the packets of this
// host's own addresses to other racks of the fabric. Routes into the fabric should have
// an MTU that is less than the uplink's by the carrier's overhead: packets that do not
// fit leave unchanged.
//
// The program comes before those of others, by TCX, if the kernel has that (Linux 6.6);
// Repair keeps it there. If the process ends without Close, the program continues with
// its last table for SprayConfig.Patience. Attaching again replaces it, misses no packet,
// and starts its counters anew. It lowers the uplink's gso_ipv4_max_size to 64 KB and,
// with SprayConfig.Cut, to a flowcell, unless SprayConfig.SuperBytes raises it.
//
// It needs CAP_NET_ADMIN, CAP_BPF and Linux 5.15. To replace another process's program it
// also needs CAP_SYS_ADMIN. With TCX and without CAP_SYS_ADMIN it does not find a program
// that a crash has left: call DetachSpray before.
func AttachSpray(cfg SprayConfig) (*Spray, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("spray: %w", err)
	}
	o := &Spray{require: cfg.Require}
	if err := o.open(sprayKind, cfg.Uplink, func() error { return o.attach(cfg) }); err != nil {
		return nil, errors.Join(err, o.closeTwins())
	}
	if err := o.attachTwins(cfg); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	if err := o.sweepHeeds(); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

func (o *Spray) attach(cfg SprayConfig) error {
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
	if o.ways6 != nil {
		if err := o.ways6.change(cfg.Topology6); err != nil {
			return err
		}
	}
	if cfg.StartCarried != nil { // the first packet is not to wait for a Beat
		if err := o.Lease(); err != nil {
			return err
		}
	}
	_, o.short = cfg.longSupers(link)
	usual := cfg
	usual.SuperBytes = 0
	o.usual = usual.settings(link)[kernel.GSOSize]
	return o.attachCutting(cfg, link)
}

// attachCutting attaches the program, with what cuts super-segments if something is to.
func (o *Spray) attachCutting(cfg SprayConfig, link netlink.Link) error {
	if cfg.CutLate && len(cfg.Uplinks) == 0 {
		o.cutter.open(o.handle, link, o.cutterAt)
	}
	late := o.cutter.index != 0
	cfg.PerPacketTCP = cfg.PerPacketTCP && !late
	if err := o.attachWith(cfg.settings(link)); err != nil {
		if o.cutter.made {
			_, err2 := closeCutter(o.handle, link)
			err = errors.Join(err, err2)
		}
		return err
	}
	if late {
		o.detached = func() error {
			_, err := closeCutter(o.handle, link)
			return err
		}
		return o.cutter.begin()
	}
	_, err := closeCutter(o.handle, link) // of the one that this one replaces
	return err
}

// Lease is Beat of a process that is about to be busy, for instance with a change of devices
// that has to wait for others: Patience begins in five seconds, or with the next Beat.
func (o *Spray) Lease() error { return o.heart.beat(5*time.Second, errSprayClosed) }

// settings are those that an uplink must have.
func (c SprayConfig) settings(link netlink.Link) (w kernel.Wanted) {
	if c.PerPacketTCP {
		w[kernel.GSOSegments] = 1
	}
	w[kernel.GSOSize] = kernel.MaxSuper
	if len(c.Cut) > 0 {
		w[kernel.GSOSize] = uint32(max(minSuper, min(c.Policy.Unit.Bytes, kernel.MaxSuper)))
	}
	if c.Topology6 != nil {
		w[kernel.GSOSize6] = w[kernel.GSOSize]
	}
	if n, _ := c.longSupers(link); n > 0 {
		w[kernel.GSOSize] = n
		if c.ReceiveLong {
			w[kernel.GROSize] = n
		}
	}
	return w
}

// minSuper is the lowest limit on super-segments, in bytes: some packets.
const minSuper = 4096

// load makes program and maps, with a counter for each bouncing switch.
func (o *Spray) load(cfg SprayConfig, link netlink.Link) error {
	spec, err := loadSpray()
	if err != nil {
		return err
	}
	if err := o.findWays(cfg); err != nil {
		return err
	}
	if err := setPatience(spec, cfg.Patience); err != nil {
		return err
	}
	if err := spec.Variables[sprayVarRequire].Set(cfg.Require); err != nil {
		return err
	}
	if source, ok := cfg.Topology.SIDSource(); ok {
		if err := spec.Variables[sprayVarSource6].Set(source.As16()); err != nil {
			return err
		}
	}
	o.uplinks = cfg.Uplinks
	if err := spec.Variables[sprayVarSeveral].Set(len(o.uplinks) > 0); err != nil {
		return err
	}
	if err := cfg.Datagrams.set(spec); err != nil {
		return err
	}
	if err := o.informed(cfg.Conga, spec); err != nil {
		return err
	}
	if cfg.Datagrams.none() {
		spec.Maps[sprayMapDatagramFlows].MaxEntries = 1
	}
	spec.Maps[sprayMapBounces].MaxEntries = uint32(max(1, len(o.switches)))
	spec.Maps[sprayMapRacks6].MaxEntries = 1
	for _, w := range o.families() {
		w.size(spec)
	}
	if how := o.ways.known.how; len(cfg.Cut) == 0 && !how.mode.draws() && (o.ways6 == nil || how != choice{}) {
		spec.Maps[sprayMapFlows].MaxEntries = 1
	}
	var objects struct {
		WeftSpray *ebpf.Program  `ebpf:"weft_spray"`
		Own       *ebpf.Map      `ebpf:"own"`
		Own6      *ebpf.Map      `ebpf:"own6"`
		Racks     *ebpf.Map      `ebpf:"racks"`
		Racks6    *ebpf.Map      `ebpf:"racks6"`
		Groups    *ebpf.Map      `ebpf:"groups"`
		Counters  *ebpf.Map      `ebpf:"counters"`
		Bounces   *ebpf.Map      `ebpf:"bounces"`
		Choices   *ebpf.Map      `ebpf:"choices"`
		Active    *ebpf.Map      `ebpf:"active"`
		Flows     *ebpf.Map      `ebpf:"flows"`
		Datagrams *ebpf.Map      `ebpf:"datagram_flows"`
		Peers     *ebpf.Map      `ebpf:"peers"`
		Local     *ebpf.Map      `ebpf:"local"`
		Clock     *ebpf.Map      `ebpf:"clock"`
		Stranger  *ebpf.Map      `ebpf:"stranger"`
		Ports     *ebpf.Map      `ebpf:"listed_ports"`
		Hosts     *ebpf.Map      `ebpf:"listed_hosts"`
		Heart     *ebpf.Map      `ebpf:".bss"`
		Heartbeat *ebpf.Variable `ebpf:"heartbeat"`
		Cutter    *ebpf.Variable `ebpf:"cutter"`
	}
	if err := kernel.Load(spec, &objects, kernel.TCNeeds); err != nil {
		return err
	}
	defer objects.Own.Close()
	defer objects.Own6.Close()
	defer objects.Flows.Close()
	defer objects.Heart.Close()
	defer objects.Datagrams.Close()
	defer objects.Ports.Close()
	defer objects.Hosts.Close()
	defer objects.Clock.Close()
	defer objects.Stranger.Close()
	o.bounces, o.cutterAt = objects.Bounces, objects.Cutter
	o.ways.racks, o.ways.groups = objects.Racks, objects.Groups
	if o.ways6 != nil {
		o.ways6.racks, o.ways6.groups = objects.Racks6, objects.Groups
	}
	o.drawn = drawn{choices: objects.Choices, active: objects.Active}
	o.peers, o.local = objects.Peers, objects.Local
	o.also = []io.Closer{objects.Bounces, objects.Racks, objects.Racks6, objects.Groups, objects.Choices, objects.Active, objects.Peers, objects.Local}
	if err := o.own(link, objects.WeftSpray, objects.Counters, objects.Heartbeat); err != nil {
		return err
	}
	shared := map[string]*ebpf.Map{
		sprayMapOwn: objects.Own, sprayMapOwn6: objects.Own6, sprayMapRacks: objects.Racks, sprayMapRacks6: objects.Racks6,
		sprayMapGroups: objects.Groups, sprayMapCounters: objects.Counters, sprayMapBounces: objects.Bounces,
		sprayMapChoices: objects.Choices, sprayMapActive: objects.Active, sprayMapFlows: objects.Flows, heartMap: objects.Heart,
		sprayMapDatagramFlows: objects.Datagrams, sprayMapListedPorts: objects.Ports, sprayMapListedHosts: objects.Hosts,
		sprayMapPeers: objects.Peers, sprayMapLocal: objects.Local, sprayMapClock: objects.Clock, sprayMapStranger: objects.Stranger,
	}
	if err := errors.Join(o.loadTwins(spec, shared), o.loadHeeds(spec, shared)); err != nil {
		return err
	}
	if err := cfg.Datagrams.put(objects.Ports, objects.Hosts); err != nil {
		return err
	}
	for _, a := range cfg.Addresses {
		var err error
		if a = a.Unmap(); a.Is6() {
			err = objects.Own6.Put(a.As16(), cfg.cuts(a))
		} else {
			err = objects.Own.Put(a.As4(), cfg.cuts(a))
		}
		if err != nil {
			return fmt.Errorf("own address %v: %w", a, err)
		}
	}
	return o.putBounces()
}

// findWays finds the ways of both families.
func (o *Spray) findWays(cfg SprayConfig) (err error) {
	several := len(cfg.Uplinks) > 0
	if o.ways, err = newWays(cfg.Topology, cfg.Self, cfg.Policy, cfg.Carrier, several); err != nil {
		return err
	}
	if cfg.Topology6 != nil {
		self, _ := cfg.self6()
		if o.ways6, err = newWays(cfg.Topology6, self, cfg.Policy, cfg.Carrier, several); err != nil {
			return err
		}
	}
	o.switches, o.ends = make(map[pathWord]netip.Addr), make(map[pathWord]end)
	for _, w := range o.families() {
		maps.Copy(o.switches, bouncesOf(w.all))
		for a, word := range w.words.numbers {
			o.ends[word] = a
		}
		if cfg.StartPlain {
			w.startPlain(cfg.StartCarried)
		}
	}
	return nil
}

// families lists the ways of the families that are sprayed, IPv4 first.
func (o *Spray) families() []*ways {
	if o.ways6 == nil {
		return []*ways{o.ways}
	}
	return []*ways{o.ways, o.ways6}
}

// putBounces makes the entries of all bouncing switches.
func (o *Spray) putBounces() error {
	perCPU := make([]bounceValue, ebpf.MustPossibleCPU())
	for word, a := range o.switches {
		var entry bounceValue
		if to, ok := o.ends[word]; ok {
			if err := o.lead(&entry, to); err != nil {
				return err
			}
		}
		for i := range perCPU {
			perCPU[i] = entry
		}
		if err := o.bounces.Put(word, perCPU); err != nil {
			return fmt.Errorf("counter of %v: %w", a, err)
		}
	}
	return nil
}

// SetTopology takes paths out of use or back into use. t is a topology of AttachSpray, of
// either family, with other links down. During the call each packet takes an old path or a new one;
// after it, a new one. The cost grows with the racks whose paths have changed.
func (o *Spray) SetTopology(t *topology.Topology) error {
	if t == nil {
		return errors.New("spray: SetTopology: no topology")
	}
	return o.use(func() error {
		w := o.ways
		if o.ways6 != nil && o.ways6.fabric.String() == t.String() {
			w = o.ways6
		}
		if err := w.change(t); err != nil {
			return fmt.Errorf("spray: SetTopology: %w", err)
		}
		return nil
	})
}

// Replace is AttachSpray, for the uplink of o and where o was attached, whatever the calling
// thread's network namespace is. o is then to be closed, which leaves the other one in place.
func (o *Spray) Replace(cfg SprayConfig) (other *Spray, err error) {
	err = o.atHome(func() (err error) {
		other, err = AttachSpray(cfg)
		return err
	})
	return other, err
}

// DetachSpray removes the program from an uplink in the network namespace of the calling
// thread and restores the former settings, whoever attached it, also after a crash.
// removed is false if there is none. It needs CAP_SYS_ADMIN to read the former settings.
func DetachSpray(uplink string) (removed bool, err error) {
	removed, err = sprayKind.detach(uplink)
	heeds, err2 := heedKind.detach(uplink)
	cut, err3 := detachCutter(uplink)
	return removed || heeds || cut, errors.Join(err, err2, err3)
}
