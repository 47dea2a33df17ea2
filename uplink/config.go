package uplink

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weft/encap"
	"weft/policy"
	"weft/stack"
	"weft/topology"
)

// Options say where the fabric is. The zero value detects it.
type Options struct {
	// Interface leads into the fabric; "" means the device of the route to the fabric's
	// switches.
	Interface string
	// MTU of the fabric in bytes; 0 means Interface's.
	MTU int
	// BusyPoll is for how long the Host looks for packets before it sleeps, at most 10 ms; 0,
	// the default, is not at all. It makes answers faster and costs a processor for as long
	// after each packet, probes included: with a time longer than the pauses between probes, a
	// Host without traffic takes a whole processor. It has no effect if the TUN receives, or
	// where GOMAXPROCS is 1 (link.PacketConfig).
	BusyPoll time.Duration
}

// NewHost opens a Device for a Host and starts the Host on it. c.Device and c.Tunnel must
// be nil. c.Address and c.Address6 are the embedded stack's: in a computed fabric the
// topology's EmbeddedAddr of this host, in an operator's free ones of its rack, which the
// switch leads here.
// Closing the Host closes the Device. After an error nothing is left.
func NewHost(c stack.Config, o Options) (*stack.Host, *Device, error) {
	d, err := Open(c, o)
	if err != nil {
		return nil, nil, err
	}
	c.Device = d
	h, err := stack.New(c)
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	return h, d, nil
}

// check returns whose address it is, and how its packets are spread.
func check(c *stack.Config) (self topology.Node, p policy.Policy, err error) {
	if c.Device != nil || c.Tunnel != nil {
		return self, p, errors.New("uplink: Config.Device or Config.Tunnel is given, but uplink opens the Device itself: leave them out")
	}
	if c.Topology == nil {
		return self, p, errors.New("uplink: Config.Topology is missing: topology.Parse makes one")
	}
	c.Address = c.Address.Unmap()
	id, ok := c.Topology.ByAddr(c.Address)
	if !ok || int(id) >= c.Topology.NumHosts() {
		return self, p, fmt.Errorf("uplink: Config.Address %v is no host's in %v; a stack on host h0.0.2 would use %v",
			c.Address, c.Topology, c.Topology.EmbeddedAddr(0))
	}
	self = c.Topology.Node(id)
	if c.Topology.Computed() && self.Addr == c.Address {
		return self, p, fmt.Errorf("uplink: Config.Address %v is that of the kernel of %s; the embedded stack's is %v",
			c.Address, self.Name, c.Topology.EmbeddedAddr(id))
	}
	if c.Policy == "" {
		c.Policy = policy.Default
	}
	if p, err = policy.New(c.Policy, c.PolicyOptions); err != nil {
		return self, p, fmt.Errorf("uplink: Config.Policy: %w", err)
	}
	p = p.At(c.PolicyOptions.Rate(c.Topology.Slowest()))
	if c.Carrier != encap.CarrierIPIP && c.Carrier != encap.CarrierSRv6 {
		return self, p, fmt.Errorf("uplink: Config.Carrier is %v, but the device carries IP: use ipip or srv6", c.Carrier)
	}
	return self, p, nil
}

// Stats are counters since Open. Counters of parts that are not in use are 0.
type Stats struct {
	// Bounces counts, by address, what the uplink's program has sent to each bouncing
	// switch, or by labels through it.
	Bounces []Bounce `json:"bounces"`
	// Encapsulated counts the packets of Bounces. The other counters are of packets
	// of any address that left by the uplink as they were, or were dropped.
	Encapsulated uint64 `json:"encapsulated"`
	Passed       uint64 `json:"passed"`  // needed no outer header, or could not get one
	Dropped      uint64 `json:"dropped"` // the kernel made room for the outer header but refused to write it
	Chosen       uint64 `json:"chosen"`  // flowcells of Bounces that took the path chosen for them (Device.Choose)

	Taken      uint64 `json:"taken"`       // packets received by the packet socket
	PassedDead uint64 `json:"passed_dead"` // packets left to the kernel because this process was not running
	Local      uint64 `json:"local"`       // packets from programs of this machine, sent round by the switch
	Lost       uint64 `json:"lost"`        // packets lost because the TUN or the packet socket was full

	Repairs uint64 `json:"repairs"` // repairs of a program or a setting at the uplink
	Trouble string `json:"trouble"` // what could not be repaired; "" for nothing
}

// Bounce counts the packets to one bouncing switch. A super-segment counts as its
// segments. Bytes include all IP headers.
type Bounce struct {
	Addr      netip.Addr `json:"addr"`
	Packets   uint64     `json:"packets"`
	Bytes     uint64     `json:"bytes"`
	Flowcells uint64     `json:"flowcells"` // that began, under luopan and rand
}
