package stack

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// Config is what New needs. New copies it.
type Config struct {
	// Address is the stack's IPv4 address: one that Topology gives to a host,
	// usually its EmbeddedAddr. Required.
	Address netip.Addr
	// Topology is the fabric as it stands; SetTopology replaces it. Required.
	Topology *topology.Topology
	// Device carries the packets. The Host owns it from a successful New on
	// and closes it. Required.
	Device Device
	// Tunnel, in place of Topology and Device, carries the packets in UDP.
	// Address is then any IPv4 address, by which the peers know the Host.
	Tunnel *Tunnel
	// Policy names how TCP is spread over the paths; "" means policy.Default. In a
	// Tunnel, of whose paths nobody knows which links they share, one that is aware
	// of congestion goes by its Rule: random.
	Policy string
	// PolicyOptions adjust the units of the policies that have some to adjust:
	// how large a flowcell is, how long a pause between flowlets.
	PolicyOptions policy.Options
	// UplinkEncapsulates says that the host's uplink has the program of
	// hostprog.AttachOffload, with the same topology and policy and with Address
	// among its own: it takes a packet's path from the number that the Host has
	// written into it. So super-segments stay whole on their way out. It counts
	// what goes by which path, and Stats.Paths is empty. The Policy must be one
	// of packets, which the Host encapsulates itself all the same, of flowcells,
	// or of flows. Of one that samples the Host tells the program what it has found
	// out, if Device is a ChoiceDevice.
	UplinkEncapsulates bool
	// SprayDatagrams spreads UDP and other protocols too, each packet by
	// Policy's rule. By default all of them between two hosts keep to one path,
	// since nothing puts them back in order. (Ports do not count: fragments
	// have none.)
	SprayDatagrams bool
	// Resequencer restores the order of incoming TCP. TCP's least
	// retransmission timeout is twice its Hold, 20 ms by default.
	Resequencer resequencer.Config
	// Timestamps lets TCP use its timestamps option (RFC 7323). By default a
	// Host takes it out of SYNs, its own and others'. Netstack measures round
	// trips by it in whole milliseconds, which in a fabric are all 0 or 1, and
	// leaves slow start for that; and it takes 12 bytes a packet. What it is for
	// besides, to tell a packet from one that is 4 GB older, needs a packet that
	// is on its way for longer than those take: no fabric keeps one for seconds.
	Timestamps bool
	// RACK turns on netstack's RACK-TLP loss detection (RFC 8985). Where 1 % is
	// lost it is half as fast again as the classic way. It is off because of its
	// probes: what a receiver holds for longer than two round trips makes it
	// probe, and it takes the answer for the repair of a loss
	// (docs/netstack-recovery.md).
	RACK bool
	// Liveness, if not nil, has the Host find out alone which paths are dead.
	Liveness *Liveness
	// Carrier is what takes a packet by its path: encap.CarrierIPIP, the default,
	// to a bouncing switch, or encap.CarrierSRv6 from port to port, where the
	// switches have the routes for it. Every policy goes with either. The Device
	// carries IP, so encap.CarrierMPLS is refused. In a Tunnel it has no meaning.
	Carrier encap.Carrier
	// LinkRateBits is the rate of the links between switches in bit/s, by which
	// policies that know what they have sent judge how much that is, where
	// Topology gives no rate; 0 means 10e9.
	LinkRateBits float64
	// Tau is the time over which conga averages a link's rate (CONGA §3.2); 0 means
	// the default of package conga.
	Tau time.Duration
	// Seed fixes where the selectors start and what they draw; 0 means a
	// random seed.
	Seed uint64
	// Clock, for simulation, is the time to live in instead of the real one.
	// Such a Host does nothing by itself: Device is not read, Receive is
	// called instead; a call on a socket that would wait fails with EAGAIN,
	// and Notifier tells when to try again; a connection that was dialled is
	// still connecting; and deadlines are refused (os.ErrNoDeadline). All
	// calls, the Clock's included, must come from one goroutine. Then Seed and
	// the order of the calls determine everything. Close it for good only: in
	// what order netstack resets what lingers is not determined.
	Clock Clock
}

// minMTU is 576 bytes, which every IPv4 host must accept (RFC 791), and the
// outer header.
func (c *Config) minMTU() int { return 576 + OverheadOf(c.Carrier) }

func (c *Config) validate() (policy.Policy, error) {
	var none policy.Policy
	c.Address = c.Address.Unmap()
	if c.Tunnel != nil {
		if err := c.validateTunnel(); err != nil {
			return none, err
		}
		return c.policy()
	}
	if c.Topology == nil {
		return none, errors.New("stack: Config.Topology is missing: topology.Parse makes one")
	}
	if c.Device == nil {
		return none, errors.New("stack: Config.Device is missing: link.OpenTUN opens one")
	}
	if err := c.validateCarrier(); err != nil {
		return none, err
	}
	if mtu := c.Device.MTU(); mtu < c.minMTU() || mtu > 65535 {
		return none, fmt.Errorf("stack: Config.Device has an MTU of %d bytes, must be from %d to 65535", mtu, c.minMTU())
	}
	id, ok := c.Topology.ByAddr(c.Address)
	if !ok {
		return none, fmt.Errorf("stack: Config.Address %v is not in %v; a stack on host h0.0.2 would use %v",
			c.Address, c.Topology, c.Topology.EmbeddedAddr(0))
	}
	if n := c.Topology.Node(id); n.Layer != topology.LayerHost {
		return none, fmt.Errorf("stack: Config.Address %v belongs to the switch %s, not to a host", c.Address, n.Name)
	}
	if err := c.validateLiveness(); err != nil {
		return none, err
	}
	return c.policy()
}

// validateCarrier checks that the Device and the fabric can carry the Carrier.
func (c *Config) validateCarrier() error {
	switch c.Carrier {
	case encap.CarrierIPIP:
		return nil
	case encap.CarrierSRv6:
		if err := c.Topology.CheckPorts(encap.MaxSIDPort + 1); err != nil {
			return fmt.Errorf("stack: Config.Carrier srv6: %w", err)
		}
		return nil
	case encap.CarrierMPLS:
		return errors.New("stack: Config.Carrier mpls needs a device that carries more than IP, which a Device does not: choose ipip or srv6")
	}
	return fmt.Errorf("stack: Config.Carrier is %v, which is none: choose encap.CarrierIPIP or CarrierSRv6", c.Carrier)
}

// Bounds of a link's rate in bit/s, as a topology has them: 1 kbit/s and 10 Tbit/s.
const (
	minLinkRate = 1e3
	maxLinkRate = 1e13
)

func (c *Config) validateTunnel() error {
	if c.Topology != nil || c.Device != nil {
		return errors.New("stack: Config.Tunnel is given, and Topology or Device, too: one way to carry packets is enough")
	}
	if c.Liveness != nil {
		return errors.New("stack: Config.Liveness does not go with Config.Tunnel, of whose paths nobody knows which links they take")
	}
	if c.Clock != nil {
		return errors.New("stack: Config.Clock does not go with Config.Tunnel, whose datagrams live in real time")
	}
	if c.Carrier != encap.CarrierIPIP {
		return fmt.Errorf("stack: Config.Carrier %v does not go with Config.Tunnel, which carries packets in UDP", c.Carrier)
	}
	if err := c.Tunnel.validate(); err != nil {
		return fmt.Errorf("stack: Config.Tunnel.%w", err)
	}
	if !c.Address.Is4() {
		return fmt.Errorf("stack: Config.Address %v is not an IPv4 address", c.Address)
	}
	if mtu := c.mtu(); mtu < 576 {
		return fmt.Errorf("stack: Config.Tunnel.Underlay leaves packets of %d bytes, wanted are 576", mtu)
	}
	return nil
}

// mtu is that of inner packets, in bytes.
func (c *Config) mtu() int {
	if c.Tunnel != nil {
		return c.Tunnel.Underlay.MTU() - c.Tunnel.overhead()
	}
	return c.Device.MTU() - OverheadOf(c.Carrier)
}

// policy checks what concerns the way packets are spread and put in order.
func (c *Config) policy() (policy.Policy, error) {
	var none policy.Policy
	if err := c.Resequencer.Validate(); err != nil {
		return none, fmt.Errorf("stack: Config.Resequencer: %w", err)
	}
	if c.Policy == "" {
		c.Policy = policy.Default
	}
	if err := c.PolicyOptions.Validate(); err != nil {
		return none, fmt.Errorf("stack: Config.PolicyOptions: %w", err)
	}
	p, err := policy.New(c.Policy, c.PolicyOptions)
	if err != nil {
		return none, fmt.Errorf("stack: Config.Policy: %w", err)
	}
	// Packets that each take a path of their own the Host encapsulates itself.
	if packets := p.Unit.Kind == flowcell.UnitPacket; c.UplinkEncapsulates && !packets && !p.AtUplink() {
		return none, fmt.Errorf("stack: Config.Policy %s cannot be told to the uplink's program, which does not know %s: choose another or unset UplinkEncapsulates", c.Policy, p.UplinkLacks())
	}
	if r := c.LinkRateBits; r != 0 && !(r >= minLinkRate && r <= maxLinkRate) { // NaN, too
		return none, fmt.Errorf("stack: Config.LinkRateBits is %v, must be a rate in bit/s from %v to %v, or 0 for 10e9", r, float64(minLinkRate), float64(maxLinkRate))
	}
	return p, nil
}
