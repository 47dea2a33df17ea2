package hostprog

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/elephant"
	"weft/internal/kernel"
)

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
	mtu := cfg.MTU
	if mtu == 0 {
		mtu = link.Attrs().MTU
	}
	o.forwards = cfg.Forwarded != nil
	if err := errors.Join(spec.Variables[sprayVarForwards].Set(o.forwards), spec.Variables[sprayVarNetworkMtu].Set(uint32(mtu)), spec.Variables[sprayVarHeeding].Set(o.informs())); err != nil {
		return err
	}
	behind := cfg.ownBehind()
	spec.Maps[sprayMapBehind].MaxEntries = uint32(max(1, len(behind)))
	forwarded := cfg.Forwarded.share(spec)
	if err := cfg.Datagrams.set(spec); err != nil {
		return err
	}
	if err := o.informed(cfg.Conga, spec); err != nil {
		return err
	}
	o.duty = cfg.Elephants
	if err := kernel.SetElephants(spec, o.duty); err != nil {
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
		Behind    *ebpf.Map      `ebpf:"behind"`
		Forwarded *ebpf.Map      `ebpf:"forwarded"`
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
		Counted   *ebpf.Map      `ebpf:"elephant_flows"`
		Pins      *ebpf.Map      `ebpf:"elephant_pins"`
		Heart     *ebpf.Map      `ebpf:".bss"`
		Heartbeat *ebpf.Variable `ebpf:"heartbeat"`
		Cutter    *ebpf.Variable `ebpf:"cutter"`
	}
	if err := kernel.LoadOver(spec, &objects, forwarded, kernel.TCNeeds); err != nil {
		return err
	}
	defer objects.Own.Close()
	defer objects.Own6.Close()
	defer objects.Behind.Close()
	defer objects.Forwarded.Close()
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
	o.counted, o.pinned = objects.Counted, objects.Pins
	o.obeyed = kernel.NewMirror[elephant.Key, kernel.PinValue](o.pinned)
	o.also = []io.Closer{objects.Bounces, objects.Racks, objects.Racks6, objects.Groups, objects.Choices, objects.Active, objects.Peers, objects.Local, o.counted, o.pinned}
	if err := o.own(link, objects.WeftSpray, objects.Counters, objects.Heartbeat); err != nil {
		return err
	}
	shared := map[string]*ebpf.Map{
		sprayMapOwn: objects.Own, sprayMapOwn6: objects.Own6, sprayMapBehind: objects.Behind, sprayMapForwarded: objects.Forwarded, sprayMapRacks: objects.Racks, sprayMapRacks6: objects.Racks6,
		sprayMapGroups: objects.Groups, sprayMapCounters: objects.Counters, sprayMapBounces: objects.Bounces,
		sprayMapChoices: objects.Choices, sprayMapActive: objects.Active, sprayMapFlows: objects.Flows, heartMap: objects.Heart,
		sprayMapDatagramFlows: objects.Datagrams, sprayMapListedPorts: objects.Ports, sprayMapListedHosts: objects.Hosts,
		sprayMapPeers: objects.Peers, sprayMapLocal: objects.Local, sprayMapClock: objects.Clock, sprayMapStranger: objects.Stranger,
		kernel.ElephantFlowsMap: o.counted, kernel.ElephantPinsMap: o.pinned,
	}
	if err := errors.Join(o.loadTwins(spec, shared), o.loadHeeds(spec, shared)); err != nil {
		return err
	}
	if err := cfg.Datagrams.put(objects.Ports, objects.Hosts); err != nil {
		return err
	}
	var cuts uint8 = ownBehind
	if len(cfg.Cut) > 0 {
		cuts |= ownCuts
	}
	if err := putBehind(objects.Behind, behind, cuts); err != nil {
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
		w.addBehind(cfg.Behind)
		w.narrow = cfg.Narrow
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
