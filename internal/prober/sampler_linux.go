package prober

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"weft/encap"
	"weft/internal/bucket"
	"weft/internal/clock"
	"weft/internal/probe"
	"weft/internal/shortage"
	"weft/link"
	"weft/luopan"
	"weft/topology"
)

// SamplerConfig says which host's paths a Sampler samples, and how.
type SamplerConfig struct {
	// Interface leads into the fabric; Gateway is the edge switch behind it.
	Interface string
	Gateway   netip.Addr
	// Address is the address of the host's kernel in Topology.
	Address netip.Addr
	// Topology is the fabric as it stands; SetTopology replaces it.
	Topology *topology.Topology
	// Carrier carries the samples. It is the carrier of data. MPLS is refused.
	Carrier encap.Carrier
	// These are those of luopan.Config.
	Samples     int
	Expiry      time.Duration
	SamplesOnly bool
	RateBits    float64
	// FlowcellBytes is what a flowcell holds at most; 0 means 65,536.
	FlowcellBytes int
	// Seed must be secret, and different each time.
	Seed uint64
	// Active is called every few milliseconds. For each rack to which flowcells have
	// begun since the last call, it calls its argument with the rack, the host of the
	// latest flowcell, and the number of flowcells. nil: nothing is sampled, and the
	// Sampler only answers peers.
	Active func(func(rack netip.Prefix, host netip.Addr, flowcells uint64)) error
	// Decide is called whenever the best path to a rack changes. Flowcells that begin
	// within valid must take path, its number in the PathSet to the rack. A valid of 0
	// means random paths. Decide may fail if the topology has changed meanwhile. It must
	// not call the Sampler, and may be called while Active runs.
	Decide func(rack netip.Prefix, path int, valid time.Duration) error
}

// Sampler samples paths and answers the samples of peers until Close. Its methods are
// safe for concurrent use.
type Sampler struct {
	config  SamplerConfig
	socket  socket
	port    *net.UDPConn // see sockets
	clock   clock.Clock
	alarm   *clock.Alarm // for what is due
	stop    chan struct{}
	ended   sync.WaitGroup
	closing sync.Once

	mu       sync.Mutex
	closed   bool
	sampler  *probe.Sampler
	table    *luopan.Table // the sampler's
	topology *topology.Topology
	racks    map[topology.NodeID]*rack // by edge switch
	bufs     [1][]byte
	told     uint64
	untold   uint64
	err      error
}

// socket is *link.Packet.
type socket interface {
	Read(bufs [][]byte, sizes []int, offset int) (int, error)
	Write(bufs [][]byte, offset int) (int, error)
	Drops() uint64
	Close() error
}

// rack is one that there is traffic to.
type rack struct {
	prefixes []netip.Prefix
	paths    topology.PathSet
	decided  int // the path that flowcells take, -1: random
	until    time.Duration
}

// OpenSampler begins to sample, in the network namespace of the calling thread. It waits
// up to three seconds for the gateway's MAC address.
func OpenSampler(c SamplerConfig) (*Sampler, error) {
	s, err := openSampler(c)
	if err != nil {
		return nil, shortage.Explain(fmt.Errorf("sample paths: %w", err))
	}
	s.ended.Go(s.receive)
	if c.Active != nil {
		s.ended.Go(s.lookAround)
	}
	return s, nil
}

func openSampler(c SamplerConfig) (*Sampler, error) {
	switch {
	case c.Topology == nil:
		return nil, errors.New("Topology is missing")
	case !c.Address.Is4():
		return nil, fmt.Errorf("Address %v is not IPv4: samples are of IPv4 alone", c.Address)
	case !c.Gateway.IsValid():
		return nil, errors.New("Gateway is missing: name the edge switch's address")
	case c.Active != nil && c.Decide == nil:
		return nil, errors.New("Decide is missing, though there is Active")
	case c.Carrier != encap.CarrierIPIP && c.Carrier != encap.CarrierSRv6:
		return nil, fmt.Errorf("Carrier %v is not of IP; use ipip or srv6", c.Carrier)
	}
	if _, _, ok := c.Topology.HostAt(c.Address); !ok {
		return nil, fmt.Errorf("Address %v is no host of %v", c.Address, c.Topology)
	}
	if c.FlowcellBytes == 0 {
		c.FlowcellBytes = 64 << 10
	}
	table, err := c.table()
	if err != nil {
		return nil, err
	}
	code, err := filter(c.Address, encap.SamplePort, false)
	if err != nil {
		return nil, err
	}
	s := newSampler(c, table)
	s.socket, err = link.OpenPacket(link.PacketConfig{Interface: c.Interface, Gateway: c.Gateway, Filter: code, ReceiveBuffer: 1 << 20})
	if err != nil {
		return nil, err
	}
	if s.port, err = net.ListenUDP("udp4", &net.UDPAddr{IP: c.Address.AsSlice(), Port: encap.SamplePort}); err != nil {
		return nil, errors.Join(fmt.Errorf("port of the samples: %w", err), s.socket.Close())
	}
	return s, s.port.SetReadBuffer(1)
}

// table returns an empty one.
func (c *SamplerConfig) table() (*luopan.Table, error) {
	return luopan.New(luopan.Config{Samples: c.Samples, Expiry: c.Expiry, SamplesOnly: c.SamplesOnly, QueueUnit: encap.QCMUnit, RateBits: c.RateBits, Seed: c.Seed})
}

// newSampler returns one without sockets.
func newSampler(c SamplerConfig, table *luopan.Table) *Sampler {
	s := &Sampler{config: c, clock: clock.Real(), stop: make(chan struct{}),
		table: table, topology: c.Topology, racks: make(map[topology.NodeID]*rack)}
	s.alarm = clock.NewAlarm(s.clock, clock.LeastPause, s.tick)
	s.sampler = probe.NewSampler(probe.SamplerConfig{Address: c.Address, Answers: bucket.New(probe.EchoRate, 100*time.Millisecond),
		Encapsulate: s.encapsulate, Outer: s.outer, Rack: s.rackOf, Write: s.write})
	s.sampler.Use(table)
	return s
}

// SetTopology replaces the fabric: from now on only its live paths are chosen. Paths that
// single hosts avoid do not matter here. If t is another fabric, everything is forgotten,
// and nothing is sampled unless the host's address is in t.
func (s *Sampler) SetTopology(t *topology.Topology) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, same := s.topology.Diff(t); !same { // hosts and racks have other numbers
		s.table, _ = s.config.table() // the configuration has been found good
		s.sampler.Use(s.table)
	}
	s.topology = t.Avoiding() // what it says is of racks
	clear(s.racks)            // each is made again when there is traffic to it
}

// Destinations returns what is known of each rack with traffic. A rack's number is that
// of its edge switch in the topology.
func (s *Sampler) Destinations() []luopan.Destination {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Destinations()
}

// Stats returns the counters.
func (s *Sampler) Stats() probe.SampleStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.sampler.Stats()
	n.Drops, n.Told, n.Untold = s.socket.Drops(), s.told, s.untold
	return n
}

// Close stops the Sampler, and waits for running calls of Active and Decide. It may be
// called more than once.
func (s *Sampler) Close() (err error) {
	s.closing.Do(func() {
		close(s.stop)
		err = s.socket.Close()
		s.ended.Wait()
		s.mu.Lock()
		s.closed = true
		s.alarm.Set(clock.Never)
		s.mu.Unlock()
		err = errors.Join(err, s.port.Close(), s.err)
	})
	return err
}
