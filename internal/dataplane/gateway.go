package dataplane

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"

	"weft/conga"
	"weft/encap"
	"weft/flowcell"
	"weft/internal/capture/tap"
	"weft/internal/clock"
	"weft/link"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// GatewayDevice is the device that a Gateway reads and writes: a Device that also carries
// super-segments.
type GatewayDevice interface {
	Device
	SuperDevice
}

// GatewayConfig configures a Gateway. NewGateway copies it.
type GatewayConfig struct {
	// Address is the IPv4 address of the host's own kernel in Topology. Required.
	Address netip.Addr
	// Address6 is the host's IPv6 address in Topology; zero if it has none. Packets to it
	// are taken from Fabric, too, so somebody must keep them from the kernel
	// (hostprog.AttachSteer).
	Address6 netip.Addr
	// Topology is the fabric as it stands; SetTopology replaces it. Required.
	Topology *topology.Topology
	// Behind are prefixes of containers behind the host, whose packets the kernel forwards.
	Behind []netip.Prefix
	// Topology6 is the same as Address6 sees it. IPv6 packets of programs are then
	// encapsulated, in IPv6. They leave by Fabric, which must have a gateway: a kernel
	// forwards IPv6 that comes from a TUN only if it forwards that of all devices, and then
	// no longer listens to routers. nil: IPv6 leaves plain.
	Topology6 *topology.Topology
	// Policy and PolicyOptions are those of stack.Config.
	//
	// The uplink's program carries out policies for which Policy.AtUplink is true, but for those of flowlets. For
	// the others the Gateway encapsulates packets itself.
	Policy        string
	PolicyOptions policy.Options
	// Carrier is that of Config. With encap.CarrierSRv6 the kernel must also forward the
	// packets written to Programs as IPv6 (hostsetup.Options), unless Topology is data: then
	// packets leave by Fabric, as those of IPv6 do.
	Carrier encap.Carrier
	// Resequencer restores the order of incoming TCP.
	Resequencer resequencer.Config
	// Seed is that of Config.
	Seed uint64
	// Programs is the TUN into which the kernel routes the packets of programs. The
	// Gateway writes outgoing packets of IPv4 back to it, for the uplink's program to
	// encapsulate (hostprog.AttachSpray). It also writes packets for programs to it. If a link.TUN
	// has several queues, they are read in parallel. Required. The Gateway owns it after
	// a successful NewGateway, and closes it.
	Programs GatewayDevice
	// Fabric is a packet socket on the uplink, from which packets from the fabric for
	// Address are read. hostprog.AttachSteer keeps them from the kernel. nil if the
	// kernel is to receive without a resequencer. The Gateway owns it as it owns
	// Programs.
	Fabric GatewayDevice
	// Longest, if more than 64 KB, is how long super-segments from Fabric may be, in bytes.
	// link.Packet reads such of TCP over IPv4.
	Longest int
	// Divider, if not nil, sends to Fabric only packets of flows that have a hole. It is told
	// when they have none any more. BeatIn must then be given, so that it is told in time.
	Divider Divider
	// Evidence makes the Gateway remember outgoing segments, so that Observe can report
	// losses. It takes 1 MB.
	Evidence bool
	// BeatOut and BeatIn, if not nil, are called at least every 200 ms, whether packets
	// come or not. The goroutine that reads from Programs calls BeatOut before each read.
	// The one that reads from Fabric or the Tunnel calls BeatIn. So the calls stop when
	// that goroutine hangs or the process is stopped. They must be quick and must not
	// call the Gateway. The devices must have SetReadDeadline, as those of package link
	// do.
	BeatOut, BeatIn func()
	// Tunnel, in place of Topology and Fabric, carries the packets of programs in UDP:
	// any protocol, IPv4 and IPv6. Address is not needed then.
	Tunnel *Tunnel
	// Tap, if not nil, is where who captures sees packets: what leaves, what arrives, and what
	// the resequencer has let go.
	Tap *tap.Tap
	// Clock, for simulation, replaces the real time. The Gateway then does nothing by
	// itself. Its owner calls ReadPrograms and ReadFabric when there is something to
	// read, and at least every 100 ms if there is a BeatOut or BeatIn. Reads from the
	// devices must not wait. All calls, including the Clock's, must come from one
	// goroutine. They and Seed then determine everything. Clock does not work with
	// Tunnel.
	Clock clock.Clock
}

// Gateway sprays the TCP of the host's own kernel, and restores the order of incoming
// packets. It knows nothing of connections: they belong to the kernel and survive the
// Gateway. It is safe for concurrent use.
type Gateway struct {
	config   Config
	below    io.Closer // where packets come from; nil if that is nowhere
	programs GatewayDevice
	egress   *Egress
	egress6  *Egress          // of IPv6; nil if that is the other one's, too
	ingress  *Ingress[*frame] // nil if there is no Fabric
	kernel   *toKernel
	queues   []*queue // of Programs

	closing sync.Once
	reading sync.WaitGroup
	done    chan struct{}

	mu     sync.Mutex
	failed error
}

// NewGateway starts a Gateway. On error nothing is left running and the devices
// stay open.
func NewGateway(c GatewayConfig) (*Gateway, error) {
	host, err := c.validate()
	if err != nil {
		return nil, err
	}
	e, err := NewEgress(host)
	if err != nil {
		return nil, fmt.Errorf("dataplane: GatewayConfig.%w", err)
	}
	g := &Gateway{config: e.config, programs: c.Programs, egress: e, done: make(chan struct{})}
	if g.egress6, err = c.newEgress6(e); err != nil {
		return nil, fmt.Errorf("dataplane: GatewayConfig.%w", err)
	}
	if g.queues, err = c.queues(); err != nil {
		return nil, err
	}
	in, err := c.beatIn()
	if err != nil {
		return nil, err
	}
	for _, e := range g.egresses() {
		e.TapTo(c.Tap)
		e.Refuse(g.refuse)
		if c.Evidence {
			e.Remember(true) // as the kernel probes tails
		}
	}
	switch {
	case c.Tunnel != nil:
		// The source has checked that the inner address is the peer's. The kernel knows
		// which destinations are its own.
		g.receive(c, in, c.Tunnel.Underlay, newTunnelSource(e.paths.tunnel), func(*flowcell.Packet, []byte) bool { return true })
	case c.Fabric != nil:
		g.receive(c, in, c.Fabric, newSuperSource(c.Fabric).upTo(c.Longest), host.accepts())
		if c.Divider != nil {
			g.ingress.divide(c.Divider, g.config.Resequencer)
		}
	}
	g.start()
	return g, nil
}

// validate returns what egress and ingress go by.
func (c *GatewayConfig) validate() (Config, error) {
	host := Config{
		Address: c.Address.Unmap(), Address6: c.Address6, Behind: c.Behind, Topology: c.Topology, Device: c.Programs, Tunnel: c.Tunnel, Policy: c.Policy, PolicyOptions: c.PolicyOptions,
		Resequencer: c.Resequencer, Seed: c.Seed, Timestamps: true, Carrier: c.Carrier, Clock: c.Clock,
	}
	switch {
	case c.Programs == nil:
		return host, errors.New("dataplane: GatewayConfig.Programs is missing: link.OpenTUN opens one")
	case c.Tunnel == nil:
		if c.Divider != nil && (c.Fabric == nil || c.BeatIn == nil) {
			return host, errors.New("dataplane: GatewayConfig.Divider needs a Fabric, from which to read what is diverted, and BeatIn")
		}
		host.UplinkEncapsulates = atUplink(c.Policy, c.PolicyOptions)
		if c.Carrier == encap.CarrierSRv6 && c.Topology != nil && !c.Topology.Computed() {
			if c.Fabric == nil {
				return host, errors.New("dataplane: GatewayConfig.Fabric is missing, by which packets to SIDs leave")
			}
			host.Device = c.Fabric
		}
	case c.Topology != nil || c.Topology6 != nil || c.Fabric != nil:
		return host, errors.New("dataplane: GatewayConfig.Tunnel is given together with Topology or Fabric: give only one way to carry packets")
	case c.Divider != nil:
		return host, errors.New("dataplane: GatewayConfig.Divider does not go with GatewayConfig.Tunnel")
	case c.Clock != nil:
		return host, errors.New("dataplane: GatewayConfig.Clock does not go with GatewayConfig.Tunnel, whose datagrams live in real time")
	}
	return host, nil
}

// beatIn returns the beat of the goroutine that reads from the fabric.
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
	g.kernel = newToKernel(c.Programs)
	g.ingress = newIngress(from, g.kernel, g.config.Resequencer, clock.Or(c.Clock))
	g.ingress.beat, g.ingress.tap = in, c.Tap
	g.ingress.accepts, g.ingress.relays = accepts, c.Tunnel == nil
	if c.Tunnel == nil {
		g.ingress.marks, g.ingress.acks, g.ingress.flights = g.egress.receiveMarks, g.receiveAcks, g.egress.flights
	}
}

// refuse gives the kernel an error about one of its packets.
func (g *Gateway) refuse(packet []byte) {
	buf := append(make([]byte, link.SuperHeadroom), packet...)
	_, _ = g.programs.WriteSuper([][]byte{buf}, link.SuperHeadroom) // or the next packet's is taken
}

// forward sends packets that a SuperDevice has read. Egress may write to them until
// it returns.
func (e *Egress) forward(bufs [][]byte, sizes []int) {
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
	e.finish(now)
}

// GatewayStats is a snapshot of a Gateway's counters, all since NewGateway.
type GatewayStats struct {
	Egress      EgressStats       `json:"egress"`
	Egress6     EgressStats       `json:"egress6"` // of IPv6; zero without GatewayConfig.Topology6
	Ingress     IngressStats      `json:"ingress"`
	Paths       []PathStats       `json:"paths"` // of packets that the Gateway has encapsulated itself
	Resequencer resequencer.Stats `json:"resequencer"`
	Datagrams   resequencer.Stats `json:"datagrams"` // of datagrams that are numbered; zero without GatewayConfig.Divider
	Handover    HandoverStats     `json:"handover"`  // zero without GatewayConfig.Divider
	Tunnel      TunnelStats       `json:"tunnel"`    // zero without one
	Evidence    EvidenceStats     `json:"evidence"`  // zero without GatewayConfig.Evidence, unless the policy heeds losses
	Evidence6   EvidenceStats     `json:"evidence6"` // of IPv6
	Conga       conga.Stats       `json:"conga"`     // zero unless the policy is conga
	// Refused counts packets that the kernel did not take back.
	Refused uint64 `json:"refused"`
	// Frames is how many buffers for packets from the fabric are in use: 8 for the
	// reader, and one for each packet or super-segment that is held.
	Frames int `json:"frames"`
}

// Stats returns the Gateway's counters.
func (g *Gateway) Stats() (s GatewayStats) {
	s.Egress, s.Paths = g.egress.Stats()
	s.Evidence, s.Conga = g.egress.EvidenceStats(), g.egress.CongaStats()
	if g.egress6 != nil {
		var paths []PathStats
		s.Egress6, paths = g.egress6.Stats()
		s.Paths, s.Evidence6 = append(s.Paths, paths...), g.egress6.EvidenceStats()
	}
	if g.ingress != nil {
		s.Ingress, s.Resequencer, s.Tunnel = g.ingress.Stats()
		g.ingress.mu.Lock()
		if h := g.ingress.handover; h != nil {
			s.Handover, s.Datagrams = h.stats, g.ingress.datagrams.Stats()
		}
		s.Refused, s.Frames = g.kernel.drops, g.kernel.pool.used
		g.ingress.mu.Unlock()
	}
	return s
}

// Close delivers the held packets and closes the devices. The host's connections
// continue. The routes into Programs must have been removed before, or packets that are
// sent meanwhile are lost. Close may be called more than once.
func (g *Gateway) Close() (err error) {
	g.closing.Do(func() {
		if g.ingress != nil { // first its source, so that the rest can be delivered
			err = g.below.Close()
			g.ingress.Close()
		}
		err = errors.Join(err, g.programs.Close())
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

// Err returns the error of the device that ended the Gateway; nil while both work.
func (g *Gateway) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}
