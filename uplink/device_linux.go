package uplink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weft/conga"
	"weft/encap"
	"weft/internal/event"
	"weft/internal/eventlog"
	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/link"
	"weft/liveness"
	"weft/policy"
	"weft/stack"
	"weft/topology"
)

// minMTU6 is the least MTU of a device that has IPv6, in bytes (RFC 8200 §5).
const minMTU6 = 1280

// Device is a stack.Device and a stack.SuperDevice, whose methods package link
// describes. The Host that it is given to closes it.
type Device struct {
	carrier
	name     string // the uplink's
	watched  bool   // the Host proves its carrier
	why      []string
	log      *slog.Logger
	tun      *link.TUN
	lock     *hostsetup.Lock
	spray    atomic.Pointer[spraying] // nil: the Host encapsulates
	changing sync.Mutex               // held while spray is replaced, or repaired
	steer    *hostprog.Steer          // nil: the TUN receives and sends
	socket   *link.Packet             // nil if steer is
	local    atomic.Uint64

	repairs  atomic.Uint64
	unmended atomic.Pointer[string] // the latest that could not be mended; nil: nothing

	stop    context.CancelFunc
	ended   sync.WaitGroup
	closing sync.Once
	err     error // of closing
}

// spraying is the program at the uplink, and what it was told.
type spraying struct {
	*hostprog.Spray
	config  hostprog.SprayConfig
	options policy.Options
}

// carrier is the part of a device that packets pass through.
type carrier interface {
	link.Receiver
	link.Sender
}

// Open opens the Device for a Host with config c, in the network namespace of the calling
// thread. NewHost starts the Host as well. Parts that only make it faster may be refused;
// Open does without them. If it fails, nothing is left.
func Open(c stack.Config, o Options) (*Device, error) {
	self, p, err := check(&c)
	if err != nil {
		return nil, err
	}
	own, err := ownAddresses()
	if err != nil {
		return nil, err
	}
	routes := []netip.Prefix{netip.PrefixFrom(c.Address, 32)}
	if c.Address6.IsValid() {
		routes = append(routes, netip.PrefixFrom(c.Address6, 128))
	}
	for _, r := range routes {
		if own[r.Addr()] {
			return nil, fmt.Errorf("uplink: Config address %v is the kernel's own: give the embedded stack another one of the rack that the switch leads here", r.Addr())
		}
	}
	// A core's address is in no routing table of weft's own.
	core := c.Topology.Node(topology.NodeID(c.Topology.NumNodes() - 1)).Addr
	up, err := hostsetup.FindUplink(core, o.Interface)
	if err != nil {
		return nil, err
	}
	if o.MTU == 0 {
		o.MTU = up.MTU
	}
	if o.MTU > up.MTU {
		return nil, fmt.Errorf("uplink: Options.MTU is %d bytes, more than the %d of %s: lower it or raise that", o.MTU, up.MTU, up.Name)
	}
	if o.BusyPoll < 0 || o.BusyPoll > link.MaxBusyPoll {
		return nil, fmt.Errorf("uplink: Options.BusyPoll is %v, must be from 0 to %v", o.BusyPoll, link.MaxBusyPoll)
	}
	if c.Carrier == encap.CarrierSRv6 && o.MTU < minMTU6 {
		return nil, fmt.Errorf("uplink: Options.MTU is %d bytes, but IPv6 needs %d: raise it or use the carrier ipip", o.MTU, minMTU6)
	}
	// The routes keep the addresses reachable for programs of this machine, and make
	// them some that may come in by the TUN where the reverse path is checked.
	tun, err := link.OpenTUN(link.TUNConfig{
		Routes: routes, MTU: o.MTU, Overhead: c.Carrier.Overhead(), Offload: true,
	})
	if err != nil {
		return nil, fmt.Errorf("uplink: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	d := &Device{carrier: tun, tun: tun, name: up.Name, watched: c.Liveness != nil, stop: stop, log: c.Log}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.lock, err = hostsetup.TakeLock(); err != nil {
		d.without("no programs at %s: %v", up.Name, err)
		return d, nil
	}
	if err := d.encapsulate(c, self, p); err != nil {
		d.without("the Host encapsulates: %v", err)
	}
	if err := d.receive(routes, own, o, up); err != nil {
		d.without("the TUN receives: %v", err)
	}
	d.ended.Go(func() { d.attend(ctx) })
	return d, nil
}

// without notes why something is not in use.
func (d *Device) without(format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	d.log.Warn("the device is not as fast as it could be", "why", why, eventlog.Key, string(event.Limited))
	d.why = append(d.why, why)
}

// encapsulate has the uplink's program do it. Where the policy is one of packets
// the Host does so anyway, and there is nothing for the program to do.
func (d *Device) encapsulate(c stack.Config, self topology.Node, p policy.Policy) (err error) {
	if p.Sprays() && !p.Unit.Cuts() {
		return nil
	}
	if c.Carrier == encap.CarrierSRv6 && !c.Topology.Computed() {
		return errors.New("the program knows no SIDs of an operator")
	}
	config := hostprog.SprayConfig{
		Uplink: d.name, Addresses: []netip.Addr{c.Address}, Topology: c.Topology, Self: self.ID, Policy: p,
		Carrier: c.Carrier, Patience: hostprog.SprayPatience, Conga: congaOf(c.PolicyOptions, c.Topology, self.ID),
	}
	spray, err := hostprog.AttachSpray(config)
	if err != nil {
		return err
	}
	d.spray.Store(&spraying{spray, config, c.PolicyOptions})
	return spray.Beat()
}

// congaOf is what the program's CONGA goes by.
func congaOf(o policy.Options, t *topology.Topology, self topology.NodeID) conga.Config {
	c := conga.Config{Tau: o.Tau, RateBits: o.LinkRateBits}
	if ports := t.Ports(t.EdgeOf(self)); len(ports) > 0 { // those that lead up are the last
		if rate := t.Rate(ports[len(ports)-1].Link); rate > 0 {
			c.RateBits = rate * 1e6
		}
	}
	return c
}

// Encapsulates reports whether the program at the uplink encapsulates instead of the
// Host.
func (d *Device) Encapsulates() bool { return d.spray.Load() != nil }

// Interface returns the name of the uplink. Topology updates arrive by it, too.
func (d *Device) Interface() string { return d.name }

// SetTopology takes paths out of use or back into use. If t is another fabric than before,
// another program takes the place of the one at the uplink, and its counters begin anew. The
// Device's Host calls it (stack.PathDevice); nobody else needs to.
func (d *Device) SetTopology(t *topology.Topology) error {
	s := d.spray.Load()
	if s == nil {
		return nil
	}
	if _, same := s.config.Topology.Diff(t); same {
		return s.SetTopology(t)
	}
	self, ok := t.ByAddr(s.config.Addresses[0])
	if !ok || int(self) >= t.NumHosts() {
		return fmt.Errorf("uplink: SetTopology: %v is no host's in %v", s.config.Addresses[0], t)
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	config := s.config
	config.Conga = congaOf(s.options, t, self)
	config.Topology, config.Self, config.StartPlain = t, self, d.watched // until the Host has proved it
	config.StartCarried = func(netip.Prefix) bool { return !d.watched }  // its first packet waits for no Beat
	// Where the unit is a packet now, the Host encapsulates as if there were no program.
	if p := config.Policy.At(s.options.Rate(t.Slowest())); p.Unit.Cuts() {
		config.Policy = p
	}
	spray, err := s.Replace(config)
	if err != nil {
		return err
	}
	d.spray.Store(&spraying{spray, config, s.options})
	return errors.Join(spray.Beat(), s.Close())
}

// SetCarriage makes packets go plain to racks for which the carrier is not proved. The
// Device's Host calls it (stack.PathDevice); nobody else needs to.
func (d *Device) SetCarriage(c *liveness.Carriage) error {
	s := d.spray.Load()
	if s == nil {
		return nil
	}
	return s.SetPlain(func(rack netip.Prefix) bool {
		edge, ok := s.config.Topology.RackAt(rack.Addr())
		return ok && c.Plain(edge)
	})
}

// Choose makes flowcells to a rack that begin within valid take a path, by its number. A
// Host that samples paths calls it (stack.PathDevice). It fails if the path is not live,
// or if Encapsulates is false: then the Host chooses.
func (d *Device) Choose(rack netip.Prefix, path int, valid time.Duration) error {
	s := d.spray.Load()
	if s == nil {
		return errNoProgram
	}
	return s.Choose(rack, path, valid)
}

// Active calls f for each rack to which flowcells have begun since the last call, with
// their number and the host of the latest one. It fails if Encapsulates is false: then
// the Host knows.
func (d *Device) Active(f func(rack netip.Prefix, host netip.Addr, flowcells uint64)) error {
	s := d.spray.Load()
	if s == nil {
		return errNoProgram
	}
	return s.Active(f)
}

var errNoProgram = errors.New("uplink: no program chooses paths, the Host does; see Device.Offloads")

// Holds reports whether at least so many of the bytes written wait at the uplink
// (stack.QueueDevice). It is false if the TUN sends, whose packets the kernel does not tell from
// others.
func (d *Device) Holds(bytes int) bool { return d.socket != nil && d.socket.Holds(bytes) }

// Offloads describes, in one line, the parts that packets pass. If this is not the
// fastest way, it says why.
func (d *Device) Offloads() string {
	s := d.carrier.Offloads().String()
	if d.Encapsulates() {
		s += "; " + d.name + " encapsulates"
	}
	if refused := d.Refused(); refused != "" {
		s += "; " + refused
	}
	return s
}

// Refused says which parts the Device does without, and why; "" if it has all parts that
// its policy can use.
func (d *Device) Refused() string { return strings.Join(d.why, "; ") }

// Stats returns the counters. It fails when the Device is closed.
func (d *Device) Stats() (Stats, error) {
	s := Stats{Local: d.local.Load(), Lost: d.Drops(), Repairs: d.repairs.Load()}
	if why := d.unmended.Load(); why != nil {
		s.Trouble = *why
	}
	if spray := d.spray.Load(); spray != nil {
		o, err := spray.Stats()
		if err != nil {
			return s, err
		}
		s.Chosen = o.Chosen
		s.Encapsulated, s.Dropped = o.Encapsulated, o.Broken
		s.Passed = o.Passed + o.Plain + o.Unattended + o.Refused + o.NoPath + o.TooLong + o.Malformed
		for _, b := range o.Bounces {
			s.Bounces = append(s.Bounces, Bounce{b.Addr, b.Packets, b.Bytes, b.Flowcells})
		}
	}
	if d.steer != nil {
		t, err := d.steer.Stats()
		if err != nil {
			return s, err
		}
		s.Taken, s.PassedDead = t.Taken, t.PassedDead
	}
	return s, nil
}

// Close unblocks all calls and removes what Open has made. The kernel gets its packets
// back first. The program that packets in flight need is removed last. Close may be
// called more than once; later calls wait for the first.
func (d *Device) Close() error {
	d.closing.Do(func() {
		d.stop()
		var errs []error
		if d.steer != nil {
			errs = append(errs, d.steer.Close())
		}
		errs = append(errs, d.carrier.Close())
		d.changing.Lock()
		if s := d.spray.Load(); s != nil {
			errs = append(errs, s.Close())
		}
		d.changing.Unlock()
		d.ended.Wait()
		if d.lock != nil {
			d.lock.Remove()
		}
		if err := errors.Join(errs...); err != nil {
			d.err = fmt.Errorf("uplink %s: %w", d.name, err)
		}
	})
	return d.err
}
