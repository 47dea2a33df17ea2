package simnet

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"weft/flowcell"
	"weft/internal/timerq"
	"weft/topology"
)

// DefaultQueueBytes is the length of a port's queue where none is given: 50
// full Ethernet frames, as in the lab of network namespaces.
const DefaultQueueBytes = 75000

// FrameOverhead is what a packet takes on a link besides itself, in bytes: the
// Ethernet header, which is what a queue of the Linux kernel accounts for.
const FrameOverhead = 14

// The limits of Config, which keep all times within 64 bits.
const (
	maxRateBits   = 1e12
	maxQueueBytes = 1 << 28
)

// Config says what the links are like.
type Config struct {
	// RateBits is the rate in each direction, in bits per second, from 1 to
	// 1e12, of links whose rate the topology does not say.
	RateBits int64
	// QueueBytes is what a port holds before it drops the newcomer, in bytes
	// with FrameOverhead, the frame in transmission included; up to 1<<28.
	// 0 means DefaultQueueBytes.
	QueueBytes int
	// HostQueueBytes is the same for a host's own port, where the kernel of a
	// real host has a longer queue than a switch; 0 means QueueBytes.
	HostQueueBytes int
	// Delay is the propagation delay of a link.
	Delay time.Duration
	// Meter, if not nil, has switches measure their queues and tell of them.
	Meter *Meter
	// SIDs are where switches take outer IPv6 headers off besides their own addresses.
	SIDs map[netip.Addr]SID
	// Seed makes the switches hash flows differently from each other, and
	// from those of a network with another Seed. The draws of impairments
	// follow from it, too.
	Seed uint64
}

func (c *Config) validate() error {
	if c.QueueBytes == 0 {
		c.QueueBytes = DefaultQueueBytes
	}
	if c.HostQueueBytes == 0 {
		c.HostQueueBytes = c.QueueBytes
	}
	switch {
	case c.RateBits < 1 || c.RateBits > maxRateBits:
		return fmt.Errorf("simnet: RateBits is %d, must be from 1 to 1e12", c.RateBits)
	case c.QueueBytes < 1 || c.QueueBytes > maxQueueBytes:
		return fmt.Errorf("simnet: QueueBytes is %d, must be from 1 to %d", c.QueueBytes, maxQueueBytes)
	case c.HostQueueBytes < 1 || c.HostQueueBytes > maxQueueBytes:
		return fmt.Errorf("simnet: HostQueueBytes is %d, must be from 1 to %d", c.HostQueueBytes, maxQueueBytes)
	case c.Delay < 0 || c.Delay > time.Hour:
		return fmt.Errorf("simnet: Delay is %v, must be from 0 to an hour", c.Delay)
	}
	return c.Meter.validate()
}

// Network is a fabric and the packets in it. The same calls give the same
// results. It is not safe for concurrent use.
type Network struct {
	config Config
	fabric string // the topology's specification
	now    time.Duration
	nodes  []node
	sids   map[[16]byte]sid
	ports  []port // two per link: the lower end's, the upper end's
	events timerq.Queue[event]
	free   []*packet
	stats  Stats
	chance rand.PCG // what impairments draw from, in the order of events
}

// event is the arrival of a packet's last bit at the far end of a port's wire.
type event struct {
	port   int32
	packet *packet
}

// packet is a packet in flight; data lies within buf and shrinks when an outer
// header is removed.
type packet struct {
	buf, data []byte
	corrupt   bool // a link has changed it
}

// New builds the fabric. Links that are down in t carry nothing.
func New(t *topology.Topology, c Config) (*Network, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	n := &Network{
		config: c,
		fabric: t.String(),
		nodes:  make([]node, 0, t.NumNodes()),
		ports:  make([]port, 2*t.NumLinks()),
		chance: *rand.NewPCG(c.Seed, 0x696d70616972),
	}
	for l := range t.Links() {
		up, down := &n.ports[2*l.ID], &n.ports[2*l.ID+1]
		up.peer, up.limit = l.B, c.QueueBytes
		down.peer, down.limit = l.A, c.QueueBytes
		if t.Node(l.A).Layer == topology.LayerHost {
			up.limit = c.HostQueueBytes
		}
		rate, err := c.rate(t, l.ID)
		if err != nil {
			return nil, err
		}
		for _, p := range []*port{up, down} {
			p.built = rate
			p.setRate(rate)
		}
		if t.Node(l.A).Layer != topology.LayerHost {
			c.Meter.fit(up)
		}
		c.Meter.fit(down)
	}
	var err error
	if n.sids, err = sidsOf(t, c.SIDs); err != nil {
		return nil, err
	}
	seeds := rand.NewPCG(c.Seed, 0x73696d6e6574)
	for id := range t.Nodes() {
		n.nodes = append(n.nodes, newNode(t, id, seeds.Uint64()))
	}
	return n, nil
}

// rate returns what a link carries each way, in bits per second.
func (c *Config) rate(t *topology.Topology, l topology.LinkID) (int64, error) {
	rate := t.Rate(l)
	if rate == 0 {
		return c.RateBits, nil
	}
	if bits := rate * 1e6; bits >= 1 && bits <= maxRateBits {
		return int64(bits), nil
	}
	return 0, fmt.Errorf("simnet: the topology gives link %s %v Mbit/s, must be from 1e-6 to 1e6", t.LinkName(l), rate)
}

// Inject sends an IP packet, or one with labels in front of it (see
// encap.SIDs), from a host, which must be one of the topology, through the queue
// of its uplink. The bytes are copied, trailing padding is cut off. now must not
// be before that of any earlier call; if it is, the latest counts.
func (n *Network) Inject(host topology.NodeID, b []byte, now time.Duration) {
	n.now = max(n.now, now)
	n.stats.Injected++
	if n.nodes[host].down {
		n.stats.Dropped[NodeDown]++
		return
	}
	length, ok := check(b)
	if !ok {
		n.stats.Dropped[Malformed]++
		return
	}
	node, p := &n.nodes[host], n.newPacket(b[:length])
	if isLabelled(p.data) {
		n.emit(node.out[0], p, n.now)
		return
	}
	n.forward(node, 0, p, n.now)
}

// Backlog returns how many bytes wait in the queue of a host's uplink, FrameOverhead
// included, and have not left at now. A host without an uplink has none.
func (n *Network) Backlog(host topology.NodeID, now time.Duration) int {
	index := n.nodes[host].out[0]
	if index < 0 || n.ports[index].busyUntil <= now {
		return 0
	}
	return n.ports[index].backlog(now)
}

// Advance lets everything happen that is due until now, in the order of time,
// and at one time in the order of its causes. It calls deliver for each packet
// that reaches a host that it is addressed to, or that a link has corrupted on
// its last hop; the bytes are valid during the call only. The call may Inject
// at the same now, and nothing else of the Network.
func (n *Network) Advance(now time.Duration, deliver func(host topology.NodeID, packet []byte)) {
	n.now = max(n.now, now)
	for n.events.Len() > 0 && n.events.Next() <= n.now {
		at := n.events.Next()
		n.arrive(n.events.Pop(), at, deliver)
	}
}

// NextDeadline returns when Advance has something to do next, and false while
// the fabric is empty.
func (n *Network) NextDeadline() (at time.Duration, ok bool) {
	return n.events.Next(), n.events.Len() > 0
}

func (n *Network) arrive(e event, at time.Duration, deliver func(topology.NodeID, []byte)) {
	in, p := &n.ports[e.port], e.packet
	node := &n.nodes[in.peer]
	switch {
	case node.down || n.nodes[n.ports[e.port^1].peer].down:
		n.drop(p, NodeDown)
		return
	case in.impairment.Down:
		n.drop(p, LinkDown)
		return
	}
	if node.layer == topology.LayerHost {
		// What is corrupt comes in as well: it is for the host to tell.
		if !p.corrupt && !node.owns(destination(p.data)) {
			n.drop(p, NotForUs)
			return
		}
		n.stats.Delivered++
		deliver(in.peer, p.data)
		n.release(p)
		return
	}
	if p.corrupt {
		if _, ok := check(p.data); !ok {
			n.drop(p, Malformed)
			return
		}
	}
	if isLabelled(p.data) {
		n.pop(node, &n.nodes[n.ports[e.port^1].peer], p, at)
		return
	}
	virtual := 0
	if node.owns(n.destination(p.data)) {
		if s, ok := n.sid(p.data); ok && s.inner != p.data[6] {
			n.drop(p, Malformed)
			return
		}
		var cause Cause
		var ok bool
		if virtual, cause, ok = node.bounce(p); !ok {
			n.drop(p, cause)
			return
		}
	}
	if !decrementTTL(p.data) {
		n.drop(p, TTLExpired)
		return
	}
	n.forward(node, virtual, p, at)
}

// forward sends p out of the port that node's routes say, at the given time.
func (n *Network) forward(node *node, virtual int, p *packet, at time.Duration) {
	ports := node.routes(n.destination(p.data), virtual)
	switch len(ports) {
	case 0:
		n.drop(p, NoRoute)
	case 1:
		n.send(ports[0], p, at)
	default:
		// The header is sound; what Parse may find wrong behind it leaves the
		// ports zero, as in a fragment, and is the receiver's business.
		var parsed flowcell.Packet
		_ = parsed.Parse(p.data)
		n.send(ports[parsed.Flow.Hash(node.seed)%uint64(len(ports))], p, at)
	}
}

func (n *Network) send(index int32, p *packet, at time.Duration) {
	out := &n.ports[index]
	if out.impairment.Down {
		n.drop(p, LinkDown)
		return
	}
	done, ok := out.send(len(p.data)+FrameOverhead, at)
	if !ok {
		n.drop(p, QueueFull)
		return
	}
	out.measure(p.data, at)
	copies := 1
	if out.impaired {
		copies = n.impair(p, &out.impairment)
	}
	if copies == 0 {
		n.drop(p, Lost)
		return
	}
	n.events.Add(done+n.config.Delay+out.impairment.Delay, event{index, p})
	if copies == 2 {
		n.repeat(index, p, at)
	}
}

func (n *Network) drop(p *packet, cause Cause) {
	n.stats.Dropped[cause]++
	n.release(p)
}

// newPacket returns a packet with a copy of b.
func (n *Network) newPacket(b []byte) *packet {
	var p *packet
	if last := len(n.free) - 1; last >= 0 {
		p, n.free = n.free[last], n.free[:last]
	} else {
		p = new(packet)
	}
	p.buf = append(p.buf[:0], b...)
	p.data, p.corrupt = p.buf, false
	return p
}

func (n *Network) release(p *packet) { n.free = append(n.free, p) }
