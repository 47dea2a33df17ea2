package prober

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/bucket"
	"weft/liveness"
	"weft/topology"
)

// Driver is what a Prober does, without its sockets, goroutines and clock: it says when
// to send what, and what to make of what has come. It takes the time as an argument,
// from any start on; time does not go back. It is not safe for concurrent use.
type Driver struct {
	self    topology.NodeID
	address netip.Addr
	carrier encap.Carrier
	beside  bool
	send    func(packet []byte, via netip.Addr) error
	observe func(*liveness.Watcher, time.Duration)
	looked  time.Duration // when observe was called latest

	watcher *liveness.Watcher
	base    *topology.Topology
	shown   *topology.Topology
	carried *liveness.Carriage // shown with it
	labels  liveness.Labels
	echoes  bucket.Bucket
	id      uint16
	buf     []byte
	stats   Stats
}

// Stats counts what a Prober has done.
type Stats struct {
	Watcher liveness.Stats `json:"watcher"`
	Echoed  uint64         `json:"echoed"`  // requests of peers that were answered
	Refused uint64         `json:"refused"` // requests that were too many, or made no sense
	Unsent  uint64         `json:"unsent"`  // probes and answers that the kernel did not take
	Drops   uint64         `json:"drops"`   // probes that the socket had no room for
}

// NewDriver returns one that begins with its first Tick. Of the configuration Interface,
// Gateway and Deliver do not matter, and an MTU of 0 means that there are no full-size
// probes. send sends a whole packet, outer header included, which is the caller's until
// it returns; via is the outer destination of IP-in-IP.
func NewDriver(c Config, send func(packet []byte, via netip.Addr) error) (*Driver, error) {
	if c.Topology == nil {
		return nil, errors.New("Topology is missing")
	}
	self, ok := c.Topology.ByAddr(c.Address)
	if !ok {
		return nil, fmt.Errorf("Address %v is no host of %v", c.Address, c.Topology)
	}
	w, err := liveness.New(liveness.Config{Topology: c.Topology, Self: self, Address: c.Address, Interval: c.Interval,
		Multiplier: c.Multiplier, Budget: c.Budget, Floor: c.Floor, Seed: c.Seed, Carrier: c.Carrier, MTU: c.MTU, Require: c.Require})
	if err != nil {
		return nil, err
	}
	w.SetIdle(c.Idle, 0)
	return &Driver{self: self, address: c.Address, carrier: c.Carrier, beside: c.Beside, send: send, observe: c.Observe,
		echoes: newEchoes(), watcher: w, base: c.Topology, shown: w.Topology(), carried: w.Carriage(),
		buf:    make([]byte, 0, encap.MaxOverhead+max(c.MTU, encap.ProbeLen+encap.MaxOverhead)),
		labels: liveness.Labels{Topology: c.Topology, Self: self}}, nil
}

// echoRate is how many requests of peers are answered a second, so that nobody makes this
// host send without bound: as many as a thousand peers may send in a fat-tree of k=8.
const echoRate = 20_000

func newEchoes() bucket.Bucket { return bucket.New(echoRate, 100*time.Millisecond) }

// observeEvery is how often the traffic is looked at.
const observeEvery = 10 * time.Millisecond

// Tick sends what is due. It is to be called at Next, when there is news, and when
// SetTopology, SetIdle or Active has been.
func (d *Driver) Tick(now time.Duration) {
	if d.observe != nil {
		d.observe(d.watcher, now)
		d.looked = now
	}
	d.watcher.Tick(now)
	d.watcher.Probes(d.probe)
}

// Next is when Tick is to be called again.
func (d *Driver) Next() time.Duration {
	if d.observe != nil {
		return min(d.watcher.Next(), d.looked+observeEvery)
	}
	return d.watcher.Next()
}

// News returns the topology and the Carriage in use, and whether one of the two is not
// what News returned before.
func (d *Driver) News() (t *topology.Topology, c *liveness.Carriage, news bool) {
	news = d.changed()
	d.shown, d.carried = d.watcher.Topology(), d.watcher.Carriage()
	return d.shown, d.carried, news
}

func (d *Driver) changed() bool {
	return d.watcher.Topology() != d.shown || d.watcher.Carriage() != d.carried
}

// SetTopology replaces what is known from elsewhere, on top of which comes what the
// Driver finds out.
func (d *Driver) SetTopology(t *topology.Topology, now time.Duration) error {
	if err := d.watcher.SetTopology(t, now); err != nil {
		return err
	}
	d.base = t
	return nil
}

// SetIdle is Prober.SetIdle.
func (d *Driver) SetIdle(idle bool, now time.Duration) { d.watcher.SetIdle(idle, now) }

// Active says that there is a connection to an address, which is ignored unless it is
// another host's of the fabric. It is to be said again within a second.
func (d *Driver) Active(peer netip.Addr, now time.Duration) {
	if id, ok := d.base.ByAddr(peer); ok && id != d.self && int(id) < d.base.NumHosts() {
		d.watcher.Active(id, peer, now)
	}
}

// Take takes a packet from the fabric, which lies in buf behind encap.MaxOverhead bytes
// of room for an outer header: a probe, or an ICMP error. It may write to buf, and
// keeps nothing of it.
func (d *Driver) Take(buf []byte, now time.Duration) {
	packet := buf[encap.MaxOverhead:]
	if len(packet) > 9 && packet[9] == protoICMP {
		d.watcher.TooBig(packet, now)
		return
	}
	b, err := encap.ParseProbe(packet)
	if err == nil && d.beside && b.Carrier != d.carrier {
		return // another Prober's
	}
	if err != nil || b.Kind != encap.ProbeRequest {
		d.watcher.Answer(packet, now) // which counts what is wrong
		return
	}
	origin, ok := d.base.ByAddr(b.Origin)
	if !ok || origin == d.self || !d.echoes.Take(1, now) {
		d.stats.Refused++
		return
	}
	paths := d.base.Whole().Paths(d.self, origin)
	if int(b.Path) >= paths.Count() {
		d.stats.Refused++
		return
	}
	if _, err := encap.ReplyProbe(packet); err != nil {
		d.stats.Refused++
		return
	}
	d.watcher.Heard(origin, now)
	d.stats.Echoed++
	d.post(buf[:encap.MaxOverhead+encap.ProbeLen+b.Padding], paths.Addr(int(b.Path)), paths.Choices(int(b.Path)))
}

// probe sends a probe.
func (d *Driver) probe(probe *liveness.Probe) {
	var ports []int
	if d.carrier == encap.CarrierSRv6 {
		var ok bool
		if ports, ok = d.labels.Of(probe); !ok {
			d.stats.Unsent++
			return
		}
	}
	d.post(probe.Append(d.buf[:encap.MaxOverhead]), probe.Via, ports)
}

// post sends an inner packet, behind room for the outer header, by a bouncing
// switch or out of these ports.
func (d *Driver) post(packet []byte, via netip.Addr, ports []int) {
	outer, err := outerOf(d.carrier, d.address, via, ports)
	if err == nil {
		d.id++
		packet, err = outer.Encapsulate(packet, d.id)
	}
	if err == nil {
		err = d.send(packet, via)
	}
	if err != nil {
		d.stats.Unsent++
	}
}

// Topology is the fabric without what is known to be dead.
func (d *Driver) Topology() *topology.Topology { return d.watcher.Topology() }

// Carriage says to which racks the carrier is used.
func (d *Driver) Carriage() *liveness.Carriage { return d.watcher.Carriage() }

// Paths says how the paths are, and why.
func (d *Driver) Paths() []liveness.PathHealth { return d.watcher.Paths() }

// Stats returns the counters; Drops is not the Driver's.
func (d *Driver) Stats() Stats {
	s := d.stats
	s.Watcher = d.watcher.Stats()
	return s
}
