package daemon

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"weft/encap"
	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/link"
	"weft/liveness"
)

// hostReceiver is the receiver of the real kernel. It belongs to the daemon's owner. The
// goroutines of the dataplane move its packets.
type hostReceiver struct {
	dataplane // nil until started
	config    *Config
	place     place
	tun       *link.TUN
	payload   int             // TUNConfig.PayloadMax as it is now
	steer     *hostprog.Steer // of mode gateway; nil elsewhere
	order     *hostprog.Order // of mode offload
	detour    *hostprog.Detour
	uplink    *link.Packet
	tunnel    *link.UDP
	in, out   lives
	admission *admission // of IPv6; nil if that is not taken
	shut      error      // why IPv6 is not taken
}

// openReceiver makes the TUN, into which nothing leads yet.
func openReceiver(c *Config, p place, plan hostsetup.Plan) (receiver, error) {
	o := link.TUNConfig{Name: c.TUN.Name, Address: plan.Address, MTU: p.mtu, Overhead: c.overhead(),
		Offload: true, Queues: c.TUN.Queues, NoForwardCheck: true}
	o.PayloadMax = c.payloadMax(p) // a reload does not change it, nor what it depends on but p
	tun, err := link.OpenTUN(o)
	if err != nil {
		return nil, err
	}
	return &hostReceiver{config: c, place: p, tun: tun, payload: o.PayloadMax}, nil
}

// overhead is what goes before packets, in bytes.
func (c *Config) overhead() int {
	if !c.tunnels() {
		return c.carrier().Overhead()
	}
	if c.joins() {
		return 40 + 8 + c.room() // as the tunnel leaves it
	}
	n := 20 + 8 + encap.UDPOverhead
	for _, p := range c.UDP.Peers {
		if p.secret != [32]byte{} {
			n = 20 + 8 + c.UDP.cipher().Overhead()
		}
	}
	if c.UDP.Listen.Addr().Unmap().Is6() {
		n += 20
	}
	return n
}

// start begins to move packets.
func (r *hostReceiver) start(hostsetup.Plan) (err error) {
	c := r.config
	o := dataplaneConfig{address: r.place.address, behind: c.behindHere(r.place), address6: r.place.address6, topology: c.fabric, topology6: c.diverted6(), carrier: c.carrier(), zeroChecksum: c.UDP.ZeroChecksum, policy: c.Policy, options: c.policyOptions(),
		programs: r.tun, name: r.place.name, peers: r.place.peers, joined: r.place.joined, room: c.room(), onlyReceiving: c.offloads(),
		evidence: c.Failures.Probes && !c.tunnels()}
	r.admit6()
	if o.resequencer, err = c.Resequencer.config(); err != nil {
		return err
	}
	o.resequencer = within(o.resequencer, r.place.memory)
	if c.tunnels() {
		r.tunnel, err = link.OpenUDP(link.UDPConfig{Listen: c.UDP.Listen, Paths: c.UDP.Paths, MTU: r.place.mtu, ZeroChecksum: c.UDP.ZeroChecksum})
	} else {
		err = r.openUplink()
	}
	if err != nil {
		return err
	}
	if !c.tunnels() && !c.offloads() {
		r.detour, err = hostprog.AttachDetour(hostprog.DetourConfig{TUN: r.tun.Name(), Uplink: r.place.uplink.Name, Gateway: r.place.uplink.Gateway, Gateway6: r.place.gateway6, Patience: hostprog.SteerPatience})
		if err != nil {
			return err
		}
	}
	o.time, o.tap = r.place.time, r.place.tap
	r.in.show()
	r.out.show()
	if r.order != nil {
		o.divider = r.order.FlowTable
		if c.asksSupers() {
			o.longest = c.SuperSegmentBytes
		}
	}
	o.uplink, o.tunnel, o.beatIn, o.beatOut = r.uplink, r.tunnel, r.beatIn, r.beatOut
	if r.dataplane, err = startDataplane(o); err != nil {
		return err
	}
	// From here on the kernel does not get them. What moves packets beats from now on,
	// but on a busy machine it may take a moment until it runs.
	r.beatIn()
	r.beatOut()
	return nil
}

// admit6 leaves IPv6 to the kernel, in whatever order it comes, unless packets of the
// dataplane's arrive.
func (r *hostReceiver) admit6() {
	if !r.place.address6.IsValid() {
		return
	}
	if r.admission, r.shut = openAdmission(r.tun, r.place.address6, r.config.fabric6); r.shut == nil {
		r.shut = r.admission.prove()
	}
	if r.shut == nil {
		return
	}
	r.place.address6 = netip.Addr{}
	if r.admission != nil {
		r.admission.shut = true
	}
}

// openUplink makes a socket that gets the fabric's TCP in place of the kernel, as long as
// the daemon lives. By it also leaves what the dataplane puts into outer headers of IPv6. In
// mode offload the socket gets only what comes behind a hole: nobody else in the daemon
// looks at what arrives.
func (r *hostReceiver) openUplink() (err error) {
	own := addresses(r.place)
	if a := r.place.address6; a.IsValid() {
		own = append(own, a)
	}
	o := link.PacketConfig{Interface: r.place.uplink.Name, MTU: r.place.mtu}
	if r.config.offloads() {
		if r.order, err = hostprog.AttachOrder(hostprog.OrderConfig{
			Uplink: r.place.uplink.Name, Addresses: own, SuperBytes: r.config.SuperSegmentBytes, Datagrams: r.config.datagrams(),
			Behind: r.config.behindHere(r.place), Forwarded: r.place.forwarded.of(),
		}); err != nil {
			return err
		}
		o.FilterFD = r.order.Filter()
		o.ReceiveBuffer = link.DefaultReceiveBuffer * (r.config.SuperSegmentBytes / minSupers) // for as many of them
		r.uplink, err = link.OpenPacket(o)
		return err
	}
	var rules []hostprog.SteerRule
	for _, a := range own {
		rules = append(rules, hostprog.SteerRule{Address: a, What: hostprog.SteerTCP | hostprog.SteerTunnelErrors})
	}
	if r.steer, err = hostprog.AttachSteer(hostprog.SteerConfig{Uplink: r.place.uplink.Name, Rules: rules, Behind: r.config.behindHere(r.place)}); err != nil {
		return err
	}
	o.Filter = r.steer.Filter()
	switch {
	case r.config.diverted6() != nil:
		o.Gateway = r.place.gateway6
	case r.config.toSIDs():
		o.Gateway = r.place.uplink.Gateway
	}
	r.uplink, err = link.OpenPacket(o)
	return err
}

// SetCarriage tells the dataplane to which racks it may send by the carrier.
func (r *hostReceiver) SetCarriage(c *liveness.Carriage) {
	if d, ok := r.dataplane.(interface{ SetCarriage(*liveness.Carriage) }); ok {
		d.SetCarriage(c)
	}
}

// SetCarriage6 is SetCarriage for IPv6.
func (r *hostReceiver) SetCarriage6(c *liveness.Carriage) {
	if d, ok := r.dataplane.(interface{ SetCarriage6(*liveness.Carriage) }); ok {
		d.SetCarriage6(c)
	}
}

// setPeerKeys changes the keys of the tunnel's peers.
func (r *hostReceiver) setPeerKeys(peers []Peer) error {
	d, ok := r.dataplane.(interface {
		SetPeerKeys(name string, key *encap.UDPKey, accept ...encap.UDPKey) error
	})
	for i := range peers {
		p := &peers[i]
		r.place.peers[i].Peer = *p // for when it is started again
		if key, also := p.keys(); ok && key != nil {
			if err := d.SetPeerKeys(p.Name, key, also...); err != nil {
				return err
			}
		}
	}
	return nil
}

// lives is when a goroutine that moves packets last showed that it lives, in nanoseconds
// since this process began. It is no time of day, because that can be set.
type lives struct{ atomic.Int64 }

// began is about when this process did. Differences to it are of the monotonic clock.
var began = time.Now()

func (l *lives) show() { l.Store(int64(time.Since(began))) }

func (l *lives) since(now time.Time) time.Duration { return now.Sub(began) - time.Duration(l.Load()) }

// beatIn and beatOut are called by what reads from the uplink, and from the TUN.
func (r *hostReceiver) beatIn() {
	r.in.show()
	switch {
	case r.steer != nil:
		r.steer.Beat()
	case r.order != nil:
		r.order.Beat()
	}
}

func (r *hostReceiver) beatOut() {
	r.out.show()
	if r.detour != nil {
		r.detour.Beat()
	}
}

// alive reports whether both have shown that they live of late.
func (r *hostReceiver) alive(now time.Time) bool {
	return max(r.in.since(now), r.out.since(now)) < hung
}

// hung is how long a goroutine that moves packets may be silent. After that the watchdog no
// longer hears that all is well.
const hung = 5 * time.Second

// Done returns a channel that is closed when the dataplane has ended. Before the start it
// is nil and never ready.
func (r *hostReceiver) Done() <-chan struct{} {
	if r.dataplane == nil {
		return nil
	}
	return r.dataplane.Done()
}

// Close gives the kernel its packets back, delivers what is held, and closes the devices.
// In this order some packets arrive twice. In the other order some would not arrive at all.
func (r *hostReceiver) Close() error {
	errs := []error{r.admission.close()}
	for _, p := range r.programs() {
		errs = append(errs, p.Close())
	}
	if r.dataplane != nil {
		return errors.Join(append(errs, r.dataplane.Close())...)
	}
	if r.uplink != nil {
		errs = append(errs, r.uplink.Close())
	}
	if r.tunnel != nil {
		errs = append(errs, r.tunnel.Close())
	}
	return errors.Join(append(errs, r.tun.Close())...)
}

func (r *hostReceiver) devices() map[string]Device {
	devices := map[string]Device{"tun": {r.tun.Offloads().String(), r.tun.Drops()}}
	if r.uplink != nil {
		devices["uplink"] = Device{r.uplink.Offloads().String(), r.uplink.Drops()}
	}
	if r.tunnel != nil {
		devices["tunnel"] = Device{r.tunnel.Offloads().String(), r.tunnel.Drops()}
	}
	return devices
}
