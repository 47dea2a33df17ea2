// Package probe drives what measures paths: a Driver a liveness.Watcher, which says whether
// paths are alive, and a Sampler a luopan.Table, which says how congested they are. Both put
// probes into packets that take their paths, hand on what comes home, and answer the probes
// of peers. Package lookout runs a Driver for a Host and for the daemon of a host's kernel. A
// Sampler is run by the data path of a Host, and by package prober. Each gives the time and
// what writes a packet.
package probe

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/bucket"
	"weft/internal/paths"
	"weft/liveness"
	"weft/topology"
)

// maxOuters bounds the outer headers of probes that are kept, 160 bytes each. Above it
// they are made anew.
const maxOuters = 1 << 12

// Driver drives a Watcher. It lives in one family, that of Config.Address: it probes by it,
// watches its peers, and leaves the probes of the other family to the Driver there. Times
// count from any start on and do not go back. It is not safe for concurrent use.
type Driver struct {
	config Config
	self   topology.NodeID
	host   netip.Addr    // the same, see topology.HostAt
	looked time.Duration // when Observe was called latest

	watcher *liveness.Watcher
	base    *topology.Topology
	labels  liveness.Labels
	outers  map[key]encap.Outer // of probes lately sent
	id      uint16
	buf     []byte
	stats   Stats
}

// key is what the outer header of a probe depends on.
type key struct {
	dst  netip.Addr
	path int
	via  netip.Addr
}

// Stats counts what a Driver has done.
type Stats struct {
	Watcher liveness.Stats `json:"watcher"`
	Echoed  uint64         `json:"echoed"`  // requests of peers that were answered
	Refused uint64         `json:"refused"` // requests that were too many, or by no path between the two
	Forged  uint64         `json:"forged"`  // probes that are none, by their checksum or what they say
	Unsent  uint64         `json:"unsent"`  // probes and answers that Write did not take
	Denied  uint64         `json:"denied"`  // those of them that the host's own kernel dropped on their way out; not the Driver's
	Drops   uint64         `json:"drops"`   // probes that the socket or the device had no room for; not the Driver's
}

// New returns a Driver that begins with its first Tick. An error names what is wrong with
// the configuration.
func New(c Config) (*Driver, error) {
	if c.Topology == nil {
		return nil, errors.New("Topology is missing")
	}
	if c.Echoes.None() {
		c.Echoes = bucket.New(EchoRate, 100*time.Millisecond)
	}
	d := &Driver{config: c, outers: make(map[key]encap.Outer),
		buf: make([]byte, 0, encap.MaxOverhead+max(c.MTU, encap.ProbeLenFrom(c.Address)+encap.MaxOverhead))}
	if err := d.begin(c.Topology); err != nil {
		return nil, err
	}
	return d, nil
}

// begin watches a fabric of which nothing is known.
func (d *Driver) begin(t *topology.Topology) error {
	c := &d.config
	self, _ := t.ByAddr(c.Address)
	host, _, ok := t.HostAt(c.Address)
	if !ok {
		return fmt.Errorf("Address %v is no host of %v", c.Address, t)
	}
	w, err := liveness.New(liveness.Config{Topology: t, Self: self, Address: c.Address, Interval: c.Interval,
		Multiplier: c.Multiplier, Budget: c.Budget, Floor: c.Floor, MinHold: c.MinHold, MaxHold: c.MaxHold,
		MaxDestinations: c.MaxDestinations, Seed: c.Seed, Carrier: c.Carrier, MTU: c.MTU, Require: c.Require, Rests: c.Rests})
	if err != nil {
		return err
	}
	w.SetIdle(c.Idle, 0)
	d.watcher, d.self, d.host, d.base = w, self, host, t
	d.labels = liveness.Labels{Topology: t, Self: self}
	clear(d.outers)
	return nil
}

// Watcher is what the Driver drives. Another fabric has another one.
func (d *Driver) Watcher() *liveness.Watcher { return d.watcher }

// observeEvery is how often the traffic is looked at, and observeCalm that while there is none.
const observeEvery, observeCalm = 10 * time.Millisecond, 250 * time.Millisecond

// Tick sends what is due. It is to be called at Next, when Observe has much to tell, and
// soon after SetTopology and Active.
func (d *Driver) Tick(now time.Duration) {
	if d.config.Observe != nil {
		d.config.Observe(d.watcher, now)
		d.looked = now
	}
	d.watcher.Tick(now)
	d.watcher.Probes(d.probe)
	if d.config.Clock != nil {
		d.watcher.Away(d.config.Clock()) // sending may have taken long
	}
}

// Next is when Tick is to be called again.
func (d *Driver) Next() time.Duration {
	next := d.watcher.Next()
	if d.config.Observe == nil {
		return next
	}
	if d.watcher.Resting() {
		return min(next, d.looked+observeCalm)
	}
	return min(next, d.looked+observeEvery)
}

// SetTopology replaces what is known from elsewhere, on top of which comes what the
// Driver finds out. Of another fabric it forgets all, since the host may have another number,
// but where both are data: see liveness.Watcher.SetTopology.
func (d *Driver) SetTopology(t *topology.Topology, now time.Duration) error {
	same := t.String() == d.base.String()
	if self, ok := t.ByAddr(d.config.Address); !same && (t.Computed() || d.base.Computed() || !ok || self != d.self) {
		return d.begin(t)
	}
	if err := d.watcher.SetTopology(t, now); err != nil {
		return err
	}
	d.base = t
	if !same {
		d.host, _, _ = t.HostAt(d.config.Address)
		d.labels = liveness.Labels{Topology: t, Self: d.self}
		clear(d.outers)
	}
	return nil
}

// Active says that there is a connection to an address, which is ignored unless it is
// another host's of the fabric. It is to be said again within a second.
func (d *Driver) Active(peer netip.Addr, now time.Duration) {
	if host, _, ok := d.base.HostAt(peer); ok && host != d.host {
		d.watcher.Active(host, peer, now)
	}
}

// Take takes a packet from the fabric, which lies in buf behind encap.MaxOverhead bytes
// of room for an outer header: a probe, or an error of ICMP or ICMPv6. It may write to buf,
// and keeps nothing of it.
func (d *Driver) Take(buf []byte, now time.Duration) {
	packet := buf[encap.MaxOverhead:]
	if isICMP(packet) {
		d.watcher.TooBig(packet, now)
		return
	}
	b, err := encap.ParseProbe(packet)
	switch {
	case err != nil:
		d.stats.Forged++
	case d.config.Beside && b.Carrier != d.config.Carrier, // another Driver's
		b.Origin.Is6() != d.config.Address.Is6():
	case b.Kind == encap.ProbeRequest:
		d.echo(buf[:encap.MaxOverhead+b.Len()], &b, now)
	default:
		d.watcher.Answer(packet, now)
	}
}

// isICMP reports whether a packet is of ICMP or ICMPv6, as its header says.
func isICMP(packet []byte) bool {
	const protoICMP, protoICMPv6 = 1, 58
	switch {
	case len(packet) < 20:
		return false
	case packet[0]>>4 == 6:
		return packet[6] == protoICMPv6
	}
	return packet[9] == protoICMP
}

// echo sends a request back by the path by which it has come, live or not. It has the same
// bouncing switch in both directions.
func (d *Driver) echo(buf []byte, request *encap.Probe, now time.Duration) {
	origin, edge, ok := d.base.HostAt(request.Origin)
	if !ok || origin == d.host || d.config.Echoes.Ready(1) > now {
		d.stats.Refused++
		return
	}
	set := d.base.Whole().Paths(d.self, edge)
	path, ok := int(request.Path), true
	if request.Via.IsValid() {
		path, ok = d.back(set, edge, request)
	}
	if !ok || path >= set.Count() {
		d.stats.Refused++
		return
	}
	if _, err := encap.ReplyProbe(buf[encap.MaxOverhead:]); err != nil {
		d.stats.Forged++
		return
	}
	o, err := paths.OuterBy(d.base, d.config.Carrier, d.config.Address, set.Addr(path), set.Choices(path))
	if err != nil {
		d.stats.Refused++
		return
	}
	d.config.Echoes.Take(1, now)
	d.watcher.Heard(origin, now)
	d.stats.Echoed++
	d.post(&o, buf, set.Addr(path), set.From(path))
}

// back returns a path that bounces where a request did. Of several, by other uplinks, it takes
// one in use. The token, which nobody chooses, makes it another one for other requests.
func (d *Driver) back(set topology.PathSet, edge topology.NodeID, request *encap.Probe) (path int, ok bool) {
	path, ok = set.Via(request.Via)
	if !ok || d.config.WriteBy == nil {
		return path, ok
	}
	var alive []int
	for _, n := range d.watcher.Topology().Paths(d.self, edge).Live {
		if set.Addr(n) == request.Via {
			alive = append(alive, n)
		}
	}
	if len(alive) > 0 {
		path = alive[request.Token%uint64(len(alive))]
	}
	return path, true
}

// probe sends a request by its path, or a boomerang round its bouncing switch.
func (d *Driver) probe(p *liveness.Probe) {
	k := key{p.Dst, p.Path, p.Via}
	o, known := d.outers[k]
	if !known {
		var ok bool
		if o, ok = d.outerOf(p); !ok {
			d.stats.Unsent++
			return
		}
		if len(d.outers) >= maxOuters {
			clear(d.outers)
		}
		d.outers[k] = o
	}
	d.post(&o, p.Append(d.buf[:encap.MaxOverhead]), p.Via, p.From)
}

func (d *Driver) outerOf(p *liveness.Probe) (o encap.Outer, ok bool) {
	var ports []int
	if d.config.Carrier == encap.CarrierSRv6 {
		if ports, ok = d.labels.Of(p); !ok {
			return o, false
		}
	}
	o, err := paths.OuterBy(d.base, d.config.Carrier, d.config.Address, p.Via, ports)
	return o, err == nil
}

// post sends an inner packet that lies behind encap.MaxOverhead bytes of room.
func (d *Driver) post(o *encap.Outer, buf []byte, via netip.Addr, from int) {
	d.id++
	packet, err := o.Encapsulate(buf, d.id)
	switch {
	case err != nil:
	case d.config.WriteBy != nil:
		err = d.config.WriteBy(packet, via, from)
	default:
		err = d.config.Write(packet, via)
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

// Stats returns the counters.
func (d *Driver) Stats() Stats {
	s := d.stats
	s.Watcher = d.watcher.Stats()
	return s
}
