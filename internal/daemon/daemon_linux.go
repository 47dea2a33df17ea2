package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"sync"
	"time"

	"golang.org/x/net/bpf"

	"weft/encap"
	"weft/fabric"
	"weft/flowcell"
	"weft/internal/notify"
	"weft/internal/prober"
	"weft/link"
	"weft/topology"
)

// daemon is a run. What is nil is not in use, or not yet.
type daemon struct {
	file    string
	log     *log.Logger
	notify  notify.Notifier
	started time.Time
	warned  bool // only serve asks

	mu        sync.Mutex // held while what is below changes, and by who asks for the status
	config    *Config
	place     place
	setup     *fabric.HostSetup
	tun       *link.TUN
	offload   *fabric.Offload
	steer     *fabric.Steer
	fabric    *link.Packet
	tunnel    *link.UDP
	dataplane dataplane
	sampler   *prober.Sampler
	follower  *follower
	status    io.Closer
	reloads   int

	paths sync.Mutex // held, besides mu, while offload and sampler change, and by who sets a topology
}

// start brings everything up, in an order in which no packet is led to where
// nobody is yet. What fails leaves the rest for stop.
func (d *daemon) start(ctx context.Context) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.place, err = d.config.find(ctx); err != nil {
		return err
	}
	plan, err := d.config.plan(d.place)
	if err != nil {
		return err
	}
	if d.config.receives() {
		if err := d.openTUN(plan); err != nil {
			return err
		}
	}
	if d.setup, err = fabric.ApplyHost(plan); err != nil {
		return err
	}
	if !d.config.tunnels() {
		if err := d.spray(d.config, d.config.fabric); err != nil {
			return err
		}
	}
	if d.config.receives() {
		if err := d.startDataplane(); err != nil {
			return err
		}
	}
	if d.follower, err = d.follow(d.config); err != nil {
		return err
	}
	if d.config.diverts() {
		if err := d.setup.Divert(); err != nil {
			return err
		}
	}
	return d.listen()
}

func (d *daemon) openTUN(plan fabric.HostPlan) (err error) {
	c := d.config
	o := link.TUNConfig{Name: c.TUN.Name, Address: plan.Address, MTU: d.place.mtu, Overhead: c.carrier().Overhead(),
		Offload: true, Queues: c.TUN.Queues, NoForwardCheck: true}
	o.PayloadMax = c.policy().Unit.Bytes // a reload does not change it
	if c.tunnels() {
		o.Overhead = c.tunnelOverhead()
	}
	if d.tun, err = link.OpenTUN(o); err != nil {
		return err
	}
	return fabric.AddAddresses(d.tun.Name(), c.TUN.Addresses)
}

// tunnelOverhead is what the tunnel adds to a packet, in bytes.
func (c *Config) tunnelOverhead() int {
	n := 20 + 8 + encap.UDPOverhead
	for _, p := range c.UDP.Peers {
		if p.secret != [32]byte{} {
			n = 20 + 8 + encap.UDPSealedOverhead
		}
	}
	if c.UDP.Listen.Addr().Unmap().Is6() {
		n += 20
	}
	return n
}

// spray attaches the program that encapsulates, by a configuration's policy and
// what its topology has become, in place of the one that there is. In between
// packets go by plain ECMP.
func (d *daemon) spray(c *Config, t *topology.Topology) (err error) {
	p := c.uplinkPolicy()
	d.paths.Lock()
	defer d.paths.Unlock()
	if err := d.closeSampler(); err != nil {
		return err
	}
	if d.offload != nil {
		if err := d.offload.Close(); err != nil {
			return err
		}
		d.offload = nil
	}
	self, _ := c.fabric.ByAddr(d.place.address)
	o := fabric.OffloadConfig{
		Uplink: d.place.uplink.Name, Addresses: addresses(d.place), Topology: t, Self: self,
		Policy: p, Carrier: c.carrier(), PerPacketTCP: c.offloads() && c.perPacket(),
	}
	if c.cutsAtUplink() {
		o.Cut = o.Addresses
	}
	d.offload, err = fabric.AttachOffload(o)
	if err != nil {
		return c.lines.Errorf("policy", "%w", err)
	}
	if c.offloads() && p.Sprays() && p.Unit.Kind != flowcell.UnitPacket && !c.ReceiversResequence {
		d.log.Printf("warning: policy %s without receivers that restore the order: TCP takes much of what arrives out of order for lost; run mode gateway there, or resequence: true, and set receivers_resequence: true here; or use drb", p.Name)
	}
	return d.sample(c, t, d.offload)
}

func (d *daemon) startDataplane() (err error) {
	c := d.config
	o := dataplaneConfig{address: d.place.address, topology: c.fabric, carrier: c.carrier(), zeroChecksum: c.UDP.ZeroChecksum, policy: c.Policy, options: c.policyOptions(),
		programs: d.tun, name: d.place.name, peers: d.place.peers, onlyReceiving: c.offloads(),
		evidence: c.Failures.Probes && !c.tunnels()}
	if o.resequencer, err = c.Resequencer.config(); err != nil {
		return err
	}
	if c.tunnels() {
		d.tunnel, err = link.OpenUDP(link.UDPConfig{Listen: c.UDP.Listen, Paths: c.UDP.Paths, MTU: d.place.mtu, ZeroChecksum: c.UDP.ZeroChecksum})
	} else {
		err = d.openFabric()
	}
	if err != nil {
		return err
	}
	o.fabric, o.tunnel = d.fabric, d.tunnel
	if d.dataplane, err = startDataplane(o); err != nil {
		return err
	}
	if d.steer != nil {
		return d.steer.Beat() // from here on the kernel does not get them
	}
	return nil
}

// openFabric makes a socket that gets the fabric's TCP, and the kernel not,
// while the daemon lives.
func (d *daemon) openFabric() (err error) {
	var rules []fabric.SteerRule
	for _, a := range addresses(d.place) {
		rules = append(rules, fabric.SteerRule{Address: a, What: fabric.SteerTCP | fabric.SteerTunnelErrors})
	}
	if d.steer, err = fabric.AttachSteer(fabric.SteerConfig{Uplink: d.place.uplink.Name, Rules: rules}); err != nil {
		return err
	}
	var filter []bpf.RawInstruction
	for _, f := range d.steer.Filter() {
		filter = append(filter, bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K})
	}
	d.fabric, err = link.OpenPacket(link.PacketConfig{Interface: d.place.uplink.Name, MTU: d.place.mtu, Filter: filter})
	return err
}

// stop undoes start, as far as that came, so that no connection is lost: first
// programs' packets go past the TUN; then the dataplane delivers what it still
// has; then the kernel receives again, and all is put back.
func (d *daemon) stop() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notify.Stopping()
	var errs []error
	try := func(err error) { errs = append(errs, err) }
	if d.follower != nil {
		try(d.follower.close())
	}
	try(d.closeSampler())
	if d.setup != nil {
		try(d.setup.Undivert())
	}
	if d.dataplane != nil {
		time.Sleep(d.config.Drain)
	}
	if d.steer != nil { // in this order some packets arrive twice, in the other none
		try(d.steer.Close())
	}
	if d.dataplane != nil {
		try(d.dataplane.Close())
	} else {
		try(closeAll(d.fabric, d.tunnel, d.tun))
	}
	if d.offload != nil {
		try(d.offload.Close())
	}
	if d.status != nil {
		try(d.status.Close())
	}
	if d.setup != nil {
		try(d.setup.Restore())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}

// closeAll closes devices that no dataplane has taken over.
func closeAll(p *link.Packet, u *link.UDP, t *link.TUN) (err error) {
	if p != nil {
		err = errors.Join(err, p.Close())
	}
	if u != nil {
		err = errors.Join(err, u.Close())
	}
	if t != nil {
		err = errors.Join(err, t.Close())
	}
	return err
}
