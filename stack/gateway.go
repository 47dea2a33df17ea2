package stack

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"sync"

	"weft/conga"
	"weft/encap"
	"weft/flowcell"
	"weft/link"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// GatewayDevice is what a Gateway reads and writes: a Device that carries
// super-segments, too.
type GatewayDevice interface {
	Device
	SuperDevice
}

// GatewayConfig is what NewGateway needs. NewGateway copies it.
type GatewayConfig struct {
	// Address is the IPv4 address of the host's own kernel in Topology. Required.
	Address netip.Addr
	// Topology is the fabric as it stands; SetTopology replaces it. Required.
	Topology *topology.Topology
	// Policy and PolicyOptions are those of Config.
	//
	// What the uplink's program carries out, it does: policies of flowcells and of
	// flows, unless they go by what receivers report or by what was sent. Packets by
	// the others the Gateway encapsulates itself.
	Policy        string
	PolicyOptions policy.Options
	// Carrier is that of Config; with encap.CarrierSRv6 what is written to Programs
	// must be forwarded as IPv6, too (hostsetup.Options).
	Carrier encap.Carrier
	// Resequencer restores the order of incoming TCP.
	Resequencer resequencer.Config
	// Seed is that of Config.
	Seed uint64
	// Programs is the TUN into which the kernel routes what programs send. What
	// is to leave the host is written back to it, for the uplink's program to
	// encapsulate (hostprog.AttachOffload), and what has come for programs is
	// written to it, too. The queues of a link.TUN that has several are read in
	// parallel. Required; the Gateway owns it from a successful NewGateway on and
	// closes it.
	Programs GatewayDevice
	// Fabric is where packets from the fabric for Address are read, a packet
	// socket on the uplink; hostprog.AttachSteer keeps them from the kernel. nil if
	// the kernel is to receive without a resequencer. Owned as Programs is.
	Fabric GatewayDevice
	// Evidence has what is sent remembered, so that Observe can tell of losses. It
	// takes 1 MB.
	Evidence bool
	// BeatOut and BeatIn, if not nil, are called at least every 100 ms, packets or not,
	// by the very goroutine that reads from Programs, and that reads from Fabric or the
	// Tunnel, before it reads: when it hangs, or the process is stopped, they are not.
	// They must be quick, and not call the Gateway. The devices must have
	// SetReadDeadline, as those of package link do.
	BeatOut, BeatIn func()
	// Tunnel, in place of Topology and Fabric, carries what programs send in UDP,
	// whatever the protocol, IPv4 and IPv6. Address is not needed then.
	Tunnel *Tunnel
	// Clock, for simulation, is the time to live in instead of the real one. Such a
	// Gateway does nothing by itself: ReadPrograms and ReadFabric are called when there
	// is something to read, and at least every 50 ms if there is a BeatOut or BeatIn.
	// Reads from the devices must not wait. All calls, the Clock's included, must come
	// from one goroutine; they and Seed then determine everything. It does not go with
	// Tunnel.
	Clock Clock
}

// Gateway sprays the TCP of the host's own kernel, and puts in order what comes
// for it. It knows nothing of connections: they are the kernel's, and survive
// it. It is safe for concurrent use.
type Gateway struct {
	config  Config
	below   io.Closer // where packets come from; nil if that is nowhere
	above   io.Closer // Programs
	egress  *egress
	ingress *ingress[*frame] // nil if there is no Fabric
	inward  *inward
	queues  []*queue // of Programs

	closing sync.Once
	reading sync.WaitGroup
	done    chan struct{}

	mu     sync.Mutex
	failed error
}

// NewGateway starts a Gateway. On error nothing is left running and the devices
// stay open.
func NewGateway(c GatewayConfig) (*Gateway, error) {
	host, pol, err := c.validate()
	if err != nil {
		return nil, err
	}
	var over *tunnel
	if c.Tunnel != nil {
		if over, err = newTunnel(*c.Tunnel); err != nil {
			return nil, fmt.Errorf("stack: GatewayConfig.Tunnel.%w", err)
		}
	}
	seed := c.Seed
	for seed == 0 {
		seed = rand.Uint64()
	}
	if host.Resequencer.Seed == 0 {
		host.Resequencer.Seed = rand.NewPCG(seed, 0x7265736571).Uint64()
	}
	g := &Gateway{config: host, above: c.Programs, egress: newEgress(host, pol, over, seed), done: make(chan struct{})}
	if err := g.egress.beAware(host.gatewayAware(pol)); err != nil {
		return nil, err
	}
	if g.queues, err = c.queues(); err != nil {
		return nil, err
	}
	in, err := c.beatIn()
	if err != nil {
		return nil, err
	}
	if c.Evidence {
		g.egress.evidence = newEvidence(seed, true) // as the kernel probes tails
	}
	switch {
	case c.Tunnel != nil:
		// That the inner source is the peer's has been checked; the kernel knows
		// which destinations are its own.
		g.receive(c, in, c.Tunnel.Underlay, newTunnelSource(over), func(*flowcell.Packet, []byte) bool { return true })
	case c.Fabric != nil:
		self := flowcell.AddressFrom(host.Address)
		g.receive(c, in, c.Fabric, newSuperSource(c.Fabric), func(pkt *flowcell.Packet, _ []byte) bool { return pkt.Flow.Dst == self })
	}
	g.egress.refuse = g.refuse
	g.start()
	return g, nil
}

// validate returns the configuration of the Host whose half a Gateway is.
func (c *GatewayConfig) validate() (host Config, pol policy.Policy, err error) {
	host = Config{
		Address: c.Address.Unmap(), Topology: c.Topology, Device: c.Programs, Policy: c.Policy, PolicyOptions: c.PolicyOptions,
		Resequencer: c.Resequencer, Seed: c.Seed, Timestamps: true, Carrier: c.Carrier, Clock: c.Clock,
	}
	if c.Programs == nil {
		return host, pol, errors.New("stack: GatewayConfig.Programs is missing: link.OpenTUN opens one")
	}
	if c.Tunnel == nil {
		host.UplinkEncapsulates = atUplink(c.Policy, c.PolicyOptions)
		pol, err = host.validate()
		return host, pol, err
	}
	if c.Topology != nil || c.Fabric != nil {
		return host, pol, errors.New("stack: GatewayConfig.Tunnel is given, and Topology or Fabric, too: one way to carry packets is enough")
	}
	if c.Clock != nil {
		return host, pol, errors.New("stack: GatewayConfig.Clock does not go with GatewayConfig.Tunnel, whose datagrams live in real time")
	}
	if err := c.Tunnel.validate(); err != nil {
		return host, pol, fmt.Errorf("stack: GatewayConfig.Tunnel.%w", err)
	}
	pol, err = host.policy()
	return host, pol, err
}

// beatIn is that of the device from below, if there is one.
func (c *GatewayConfig) beatIn() (beat, error) {
	switch {
	case c.Tunnel != nil:
		return newBeat("BeatIn", c.BeatIn, c.Tunnel.Underlay, c.Clock)
	case c.Fabric != nil:
		return newBeat("BeatIn", c.BeatIn, c.Fabric, c.Clock)
	}
	return beat{}, nil
}

// receive prepares to take packets from below to programs.
func (g *Gateway) receive(c GatewayConfig, in beat, below io.Closer, from source, accepts func(*flowcell.Packet, []byte) bool) {
	g.below = below
	g.inward = newInward(c.Programs)
	clock := c.Clock
	if clock == nil {
		clock = newRealClock()
	}
	g.ingress = newIngress(from, g.inward, g.config.Resequencer, clock)
	g.ingress.beat = in
	g.ingress.accepts, g.ingress.relays = accepts, c.Tunnel == nil
	if c.Tunnel == nil {
		g.ingress.marks, g.ingress.flights = g.egress.receiveMarks, g.egress.flights
	}
}

// refuse gives the kernel an error about a packet of its own.
func (g *Gateway) refuse(packet []byte) {
	buf := append(make([]byte, link.SuperHeadroom), packet...)
	_, _ = g.config.Device.(SuperDevice).WriteSuper([][]byte{buf}, link.SuperHeadroom) // or the next packet's is taken
}

// forward sends packets that a SuperDevice has read. They are the egress's to
// write to until it returns.
func (e *egress) forward(bufs [][]byte, sizes []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	for i, buf := range bufs {
		h := link.ParseVnetHeader((*[link.VnetHeaderLen]byte)(buf[link.SuperHeadroom-link.VnetHeaderLen:]))
		if !e.out.fromDevice(h, buf[link.SuperHeadroom:link.SuperHeadroom+sizes[i]]) {
			e.stats.Malformed++
			continue
		}
		e.transmit(&e.out, now)
	}
	e.flush()
	e.reportLosses()
}

// SetTopology makes the Gateway spread later packets over the live paths of t,
// which must contain its address.
func (g *Gateway) SetTopology(t *topology.Topology) error {
	if t == nil {
		return errors.New("stack: SetTopology: no topology")
	}
	if g.egress.tunnel != nil {
		return errors.New("stack: SetTopology: a Tunnel has none")
	}
	if id, ok := t.ByAddr(g.config.Address); !ok || int(id) >= t.NumHosts() {
		return fmt.Errorf("stack: SetTopology: %v is no host of %v", g.config.Address, t)
	}
	g.egress.setTopology(t)
	return nil
}

// GatewayStats is a snapshot of a Gateway's counters, all since NewGateway.
type GatewayStats struct {
	Egress      EgressStats       `json:"egress"`
	Ingress     IngressStats      `json:"ingress"`
	Paths       []PathStats       `json:"paths"` // of packets that the Gateway has encapsulated itself
	Resequencer resequencer.Stats `json:"resequencer"`
	Tunnel      TunnelStats       `json:"tunnel"`   // zero without one
	Evidence    EvidenceStats     `json:"evidence"` // zero without GatewayConfig.Evidence
	Conga       conga.Stats       `json:"conga"`    // zero unless the policy is conga
	// Refused counts packets that the kernel did not take back.
	Refused uint64 `json:"refused"`
	// Frames is how many buffers for packets from the fabric are in use at the moment:
	// 8 that the reader fills, and one for each packet or super-segment that waits for
	// what was sent before it.
	Frames int `json:"frames"`
}

// Stats returns the Gateway's counters.
func (g *Gateway) Stats() (s GatewayStats) {
	s.Egress, s.Paths = g.egress.snapshot()
	s.Evidence, s.Conga = g.egress.evidenceStats(), g.egress.congaStats()
	if g.ingress != nil {
		s.Ingress, s.Resequencer, s.Tunnel = g.ingress.snapshot()
		g.ingress.mu.Lock()
		s.Refused, s.Frames = g.inward.drops, g.inward.pool.used
		g.ingress.mu.Unlock()
	}
	return s
}

// Close delivers what is held and closes the devices. The host's connections
// stay; the routes into Programs must have been taken away before, or what is
// sent meanwhile is lost. Close may be called more than once.
func (g *Gateway) Close() (err error) {
	g.closing.Do(func() {
		if g.ingress != nil { // first its source, so that the rest can be delivered
			err = g.below.Close()
			g.ingress.close()
		}
		err = errors.Join(err, g.above.Close())
		g.reading.Wait()
		close(g.done)
	})
	return err
}

func (g *Gateway) fail(err error) {
	g.mu.Lock()
	if g.failed == nil {
		g.failed = fmt.Errorf("device failed: %w", err)
	}
	g.mu.Unlock()
	go g.Close()
}

// Done is closed when the Gateway has ended.
func (g *Gateway) Done() <-chan struct{} { return g.done }

// Err is why a device failed, with which the Gateway ends; nil while they work.
func (g *Gateway) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}
