package daemon

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"weft/conga"
	"weft/internal/congestion"
	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/internal/pacing"
	"weft/internal/probe"
	"weft/internal/prober"
	"weft/link"
	"weft/liveness"
	"weft/luopan"
	"weft/topology"
)

// kernel is all that a daemon does to the machine and sees of it. Tests replace it by one
// that forgets and refuses.
type kernel struct {
	orders  func() error // says why the kernel cannot keep what arrives in order, nil if it can
	learn   func(*Config) (learner, error)
	find    func(context.Context, *Config) (place, error)
	control func(name string) error    // says why the kernel has no such congestion control, nil if it has
	look    func(place) (place, error) // what of a place may change while the daemon runs
	reach   func(place) error          // waits for the gateway to answer, seconds at most
	setUp   func(hostsetup.Plan) (hostSetup, error)
	open    func(*Config, place, hostsetup.Plan) (receiver, error)
	spray   func(hostprog.SprayConfig) (sprayer, error)
	sample  func(prober.SamplerConfig) (sampler, error)
	follow  func(*Config, place, *topology.Topology, receiver, func(news)) (follower, error)
	pace    func(pacing.Config) (pacer, error)
	note    func(memory int64) (*hostprog.Forwarded, error)
}

// hostSetup is *hostsetup.Setup: settings, addresses, routes and rules.
type hostSetup interface {
	Repair(hostsetup.Plan) ([]string, error)
	RepairSettings() ([]string, error)
	Divert() error
	Undivert() error
	Withdraw() error
	Restore() error
	Unknown() []string
}

// receiver is the TUN, and what reads what arrives and what programs send.
type receiver interface {
	dataplane
	start(hostsetup.Plan) error
	SetCarriage(*liveness.Carriage)
	SetCarriage6(*liveness.Carriage)
	Repair() ([]string, error)
	alive(now time.Time) bool // what moves packets has shown that it lives
	devices() map[string]Device
	steering() any
	ordering() any
}

// sprayer is *hostprog.Spray: the program at the uplink.
type sprayer interface {
	SetTopology(*topology.Topology) error
	SetPlain(func(rack netip.Prefix) bool) error
	Repair() ([]string, error)
	Beat() error
	Lease() error
	Close() error
}

// sampler is *prober.Sampler.
type sampler interface {
	SetTopology(*topology.Topology)
	Destinations() []luopan.Destination
	Stats() probe.SampleStats
	Close() error
}

// follower is what finds out what has failed.
type follower interface {
	setKeys(*Config) error
	updated() any     // listen.Status; nil: nobody listens
	probing() probing // what may be asked for the state of paths, without the owner's lock
	heard(*topology.Topology)
	rebase(*Config, place) error // goes on in the configuration's fabrics, and tells what is known there
	refused() string             // why nothing that switches say is believed, "" if something is, or nothing is said
	Close() error                // waits until no more news comes
}

// theKernel is the real one.
func theKernel() kernel {
	return kernel{
		orders:  untilItCan(hostprog.CanOrder),
		learn:   learnBy,
		find:    func(ctx context.Context, c *Config) (place, error) { return c.find(ctx) },
		control: congestion.Check,
		look:    lookAround, reach: reachGateway,
		setUp: func(p hostsetup.Plan) (hostSetup, error) {
			s, err := hostsetup.Apply(p)
			if err != nil {
				return nil, err // not a nil pointer in an interface
			}
			return s, nil
		},
		open: openReceiver,
		spray: func(c hostprog.SprayConfig) (sprayer, error) {
			o, err := hostprog.AttachSpray(c)
			if err != nil {
				return nil, err
			}
			return o, nil
		},
		sample: func(c prober.SamplerConfig) (sampler, error) {
			s, err := prober.OpenSampler(c)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		follow: follow,
		note:   hostprog.NewForwarded,
		pace: func(c pacing.Config) (pacer, error) {
			h, err := pacing.Open(c)
			if err != nil {
				return nil, err
			}
			return h, nil
		},
	}
}

// lookAround looks again at what may have changed about the uplink. If the routes named a
// gateway before and name none now, it keeps that gateway: the routes of a device that is
// gone are gone, too, and nothing else names one.
func lookAround(p place) (place, error) {
	if p.uplink.Name == "" {
		return p, p.findAnyForwarding(deviceSettings) // a tunnel has none
	}
	if len(p.ways) > 0 {
		if err := p.lookAtWays(); err != nil {
			return p, err
		}
	} else {
		u, err := hostsetup.LookAtUplink(p.uplink)
		if err != nil {
			return p, err
		}
		p.uplink = u
	}
	p.findStrictUplinks()
	if err := p.findForwarding(); err != nil {
		return p, err
	}
	has, err := hostsetup.HasAddress(p.address)
	if err != nil {
		return p, err
	}
	p.homeless = !has
	p.filter, err = hostsetup.ReverseFilter()
	return p, err
}

// reachGateway finds out whether the gateway answers, if there is one uplink; of several, the
// kernel finds it. That of IPv6 find6 asks.
func reachGateway(p place) error {
	if len(p.ways) > 0 {
		return nil
	}
	return reach(p.uplink.Name, p.uplink.Gateway)
}

// reach finds out whether a gateway answers, as each socket that sends to it does.
func reach(uplink string, gateway netip.Addr) error {
	if !gateway.IsValid() {
		return nil
	}
	s, err := link.OpenPacket(link.PacketConfig{Interface: uplink, Gateway: gateway, Filter: nothing})
	if err != nil {
		return err
	}
	return s.Close()
}

// nothing is a filter that takes no packet.
var nothing = []bpf.RawInstruction{{Op: unix.BPF_RET | unix.BPF_K}}

// needsGateway reports whether parts of the daemon end if the gateway does not answer.
func (c *Config) needsGateway() bool { return !c.tunnels() && (c.Failures.Probes || c.samples()) }

// spray says what the program at the uplink is to do under a configuration.
// t and six are the fabric as it stands for IPv4 and, nil if nothing is known yet, IPv6.
func (c *Config) spray(p place, t, six *topology.Topology) hostprog.SprayConfig {
	self, _ := c.fabric.ByAddr(p.address)
	o := hostprog.SprayConfig{
		Uplink: p.uplink.Name, Addresses: addresses(p), Topology: t, Topology6: c.six(), Self: self,
		Policy: c.uplinkPolicy(), Carrier: c.carrier(), PerPacketTCP: c.offloads() && c.perPacket(), CutLate: c.cutsLate(),
		Datagrams: c.spraysDatagrams(), Elephants: c.duty(),
		Conga:   conga.Config{Tau: c.Tau, RateBits: edgeRate(t, self)},
		Require: c.Require, StartPlain: c.proves(), Uplinks: p.sprayUplinks(),
		Behind: c.behind(p), Forwarded: p.forwarded.of(), CutForwarded: c.cutsForwarded(p), MTU: p.mtu, Narrow: p.narrow,
	}
	if a := c.address6(); a.IsValid() {
		o.Addresses = append(o.Addresses, a)
		if six != nil && sameFabric(six, o.Topology6) {
			o.Topology6 = six
		}
	}
	if !c.Require {
		o.Patience = hostprog.SprayPatience
	}
	if c.numbersAtUplink() {
		o.Cut = o.Addresses
	}
	if c.longSupers() && !p.short {
		o.SuperBytes = c.SuperSegmentBytes
	}
	o.ReceiveLong = !c.receives()
	return o
}

// edgeRate is the rate of the links by which a host's packets leave its rack, in bit/s; 0 if
// that is not known. Of its edge switch's ports, those that lead up are the last. None may be
// known yet.
func edgeRate(t *topology.Topology, self topology.NodeID) float64 {
	if ports := t.Ports(t.EdgeOf(self)); len(ports) > 0 {
		return t.Rate(ports[len(ports)-1].Link) * 1e6
	}
	return 0
}

// sampling says how paths are sampled. The host always answers peers' samples. The program
// gets the results of the host's own only under a policy that samples.
func (c *Config) sampling(p place, t *topology.Topology, s sprayer) prober.SamplerConfig {
	o := prober.SamplerConfig{
		Interface: p.uplink.Name, Gateway: p.uplink.Gateway, Address: p.address, Topology: t,
		Carrier: c.carrier(), Samples: c.Samples, Expiry: c.Expiry, SamplesOnly: c.SamplesOnly, FlowcellBytes: c.FlowcellBytes, Seed: rand.Uint64(),
	}
	if self, ok := t.ByAddr(p.address); ok {
		o.RateBits = edgeRate(t, self)
	}
	if program, ok := s.(*hostprog.Spray); ok && c.samples() {
		o.Active = func(f func(netip.Prefix, netip.Addr, uint64)) error {
			return program.Active(func(rack netip.Prefix, host netip.Addr, flowcells uint64) {
				f(rack, p.forwarded.hostOf(host), flowcells)
			})
		}
		o.Decide = program.Choose
	}
	return o
}

func addresses(p place) []netip.Addr { return []netip.Addr{p.address} }

// gone reports whether an error says that what packets go by is no more: the uplink, or the
// way in by the TUN.
func gone(err error) bool {
	return errors.Is(err, hostprog.ErrUplinkGone) || errors.Is(err, errShut) || errors.Is(err, errWay) || errors.Is(err, errOpen)
}
