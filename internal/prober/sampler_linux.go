package prober

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"weft/encap"
	"weft/internal/bucket"
	"weft/internal/probe"
	"weft/internal/shortage"
	"weft/link"
	"weft/luopan"
	"weft/topology"
)

// SamplerConfig says whose paths are sampled.
type SamplerConfig struct {
	// Interface leads into the fabric; Gateway is the edge switch behind it.
	Interface string
	Gateway   netip.Addr
	// Address is the host's own in Topology, its kernel's.
	Address netip.Addr
	// Topology is the fabric as it stands; SetTopology replaces it.
	Topology *topology.Topology
	// Carrier has samples take their paths: the one of data. MPLS is refused.
	Carrier encap.Carrier
	// Samples, Expiry, QueueUnit and RateBits are those of luopan.Config.
	Samples   int
	Expiry    time.Duration
	QueueUnit int
	RateBits  float64
	// FlowcellBytes is what a flowcell holds at most; 0 means 65,536.
	FlowcellBytes int
	// Seed is secret, and another one each time.
	Seed uint64
	// Active is called every few milliseconds and says to which racks flowcells have
	// begun since: to what host the latest was, and how many. nil: nothing is
	// sampled, and only peers are answered.
	Active func(func(rack netip.Prefix, host netip.Addr, flowcells uint64)) error
	// Decide is told the path, by its number in the PathSet to the rack, that
	// flowcells which begin within valid are to take, whenever that changes; 0 is
	// for random ones. By what goes on meanwhile it may refuse. It must not call the
	// Sampler, and may be called while Active is.
	Decide func(rack netip.Prefix, path int, valid time.Duration) error
}

// Sampler samples paths, and answers the samples of peers, until Close. Its methods
// are safe for concurrent use.
type Sampler struct {
	config  SamplerConfig
	self    topology.NodeID
	socket  *link.Packet
	port    *net.UDPConn // see sockets
	start   time.Time
	wake    chan struct{}
	stop    chan struct{}
	ended   sync.WaitGroup
	closing sync.Once

	mu       sync.Mutex
	table    *luopan.Table
	topology *topology.Topology
	racks    map[uint32]*rack // by luopan's number; those of the topology at most
	echoes   bucket.Bucket
	id       uint16
	bufs     [1][]byte
	stats    SamplerStats
	err      error
}

// rack is one that there is traffic to.
type rack struct {
	prefix  netip.Prefix
	paths   topology.PathSet
	decided int // the path that flowcells take, -1: random
	until   time.Duration
}

// SamplerStats counts what a Sampler has done.
type SamplerStats struct {
	Table    luopan.Stats `json:"table"`
	Decided  uint64       `json:"decided"`  // times that Decide has taken a path
	Failed   uint64       `json:"failed"`   // times that Active or Decide has failed
	Answered uint64       `json:"answered"` // samples of peers that were answered
	Refused  uint64       `json:"refused"`  // samples of peers that were too many, or made no sense
	Unsent   uint64       `json:"unsent"`   // samples and answers that could not be sent
	Drops    uint64       `json:"drops"`    // those that the socket had no room for, or the uplink's queue
}

// OpenSampler begins to sample, in the network namespace of the calling thread. It
// waits, for at most three seconds, for the gateway to tell its MAC address.
func OpenSampler(c SamplerConfig) (*Sampler, error) {
	s, err := openSampler(c)
	if err != nil {
		return nil, shortage.Explain(fmt.Errorf("sample paths: %w", err))
	}
	s.ended.Go(s.receive)
	if c.Active != nil {
		s.ended.Go(s.run)
		s.ended.Go(s.lookAround)
	}
	return s, nil
}

func openSampler(c SamplerConfig) (*Sampler, error) {
	switch {
	case c.Topology == nil:
		return nil, errors.New("Topology is missing")
	case !c.Gateway.IsValid():
		return nil, errors.New("Gateway is missing: name the edge switch's address")
	case c.Active != nil && c.Decide == nil:
		return nil, errors.New("Decide is missing, though there is Active")
	case c.Carrier != encap.CarrierIPIP && c.Carrier != encap.CarrierSRv6:
		return nil, fmt.Errorf("Carrier %v is not of IP; use ipip or srv6", c.Carrier)
	}
	self, ok := c.Topology.ByAddr(c.Address)
	if !ok || int(self) >= c.Topology.NumHosts() {
		return nil, fmt.Errorf("Address %v is no host of %v", c.Address, c.Topology)
	}
	if c.FlowcellBytes == 0 {
		c.FlowcellBytes = 64 << 10
	}
	table, err := luopan.New(luopan.Config{Samples: c.Samples, Expiry: c.Expiry, QueueUnit: c.QueueUnit, RateBits: c.RateBits, Seed: c.Seed})
	if err != nil {
		return nil, err
	}
	code, err := filter(c.Address, encap.SamplePort, false)
	if err != nil {
		return nil, err
	}
	s := &Sampler{config: c, self: self, start: time.Now(), wake: make(chan struct{}, 1), stop: make(chan struct{}),
		echoes: bucket.New(probe.EchoRate, 100*time.Millisecond), table: table, topology: c.Topology, racks: make(map[uint32]*rack)}
	s.socket, err = link.OpenPacket(link.PacketConfig{Interface: c.Interface, Gateway: c.Gateway, Filter: code, ReceiveBuffer: 1 << 20})
	if err != nil {
		return nil, err
	}
	if s.port, err = net.ListenUDP("udp4", &net.UDPAddr{IP: c.Address.AsSlice(), Port: encap.SamplePort}); err != nil {
		return nil, errors.Join(fmt.Errorf("port of the samples: %w", err), s.socket.Close())
	}
	return s, s.port.SetReadBuffer(1)
}

// now is never 0, which in an answer means that there is no clock.
func (s *Sampler) now() time.Duration { return time.Since(s.start) + 1 }

// SetTopology replaces the fabric: from now on only its live paths are chosen. What is
// avoided to single hosts does not matter.
func (s *Sampler) SetTopology(t *topology.Topology) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.topology = t.Avoiding() // what it says is of racks
	clear(s.racks)            // each is made again when there is traffic to it
}

func (s *Sampler) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Self is the host.
func (s *Sampler) Self() topology.NodeID { return s.self }

// Destinations says what is known of each rack that there is traffic to. Their
// numbers are the first addresses of the racks, big-endian.
func (s *Sampler) Destinations() []luopan.Destination {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Destinations()
}

// Stats returns the counters.
func (s *Sampler) Stats() SamplerStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.stats
	is.Table, is.Drops = s.table.Stats(), s.socket.Drops()
	return is
}

// Close stops, and waits for calls of Active and Decide to end. It may be called
// more than once.
func (s *Sampler) Close() (err error) {
	s.closing.Do(func() {
		close(s.stop)
		err = s.socket.Close()
		s.ended.Wait()
		err = errors.Join(err, s.port.Close(), s.err)
	})
	return err
}

// rackOf returns the prefix of a host's rack, which every fabric has a /24 for
// (thesis §3.1.2).
func rackOf(host netip.Addr) netip.Prefix { return netip.PrefixFrom(host, 24).Masked() }

// number is a rack's to the table.
func number(prefix netip.Prefix) uint32 { return four(prefix.Addr()) }

func four(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}
