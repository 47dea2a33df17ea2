package stack

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"weft/encap"
	"weft/internal/dataplane"
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
	// Device carries the packets. It announces by further methods what else it does:
	// SuperDevice, PathDevice. The Host owns it from a successful New on and closes it.
	// Required; uplink.NewHost opens one.
	Device Device
	// Carrier is what takes a packet by its path: encap.CarrierIPIP, the default,
	// to a bouncing switch, or encap.CarrierSRv6 from port to port, where the
	// switches have the routes for it. Every policy goes with either. The Device
	// carries IP, so encap.CarrierMPLS is refused.
	Carrier encap.Carrier
	// Tunnel, in place of Topology, Device and Carrier, carries the packets in UDP.
	// Address is then any IPv4 address, by which the peers know the Host.
	Tunnel *Tunnel

	// Policy names how TCP is spread over the paths; "" means policy.Default. In a
	// Tunnel, of whose paths nobody knows which links they share, one that is aware
	// of congestion goes by its Rule: random.
	Policy string
	// Policies are in place of Policy for what is sent to the addresses in their prefixes,
	// also on accepted connections. The longest prefix counts. At most 1,024. WithPolicy
	// chooses for one connection.
	Policies []PrefixPolicy
	// PolicyOptions adjust all policies: how large a flowcell is, how long a pause between
	// flowlets, which rate links have where Topology does not say.
	PolicyOptions policy.Options
	// SprayDatagrams spreads UDP and other protocols too, each packet by
	// its policy's rule. By default all of them between two hosts keep to one path,
	// since nothing puts them back in order. (Ports do not count: fragments
	// have none.)
	SprayDatagrams bool

	// Resequencer restores the order of incoming TCP. TCP's least
	// retransmission timeout is twice its Hold, 20 ms by default.
	Resequencer resequencer.Config
	// TCP changes what netstack's TCP is told.
	TCP TCP

	// Liveness, if not nil, has the Host find out alone which paths are dead. It does not
	// go with Tunnel.
	Liveness *Liveness
	// Log, if not nil, is told what changes, each change once: links that go out of use
	// and come back, and why; to which racks the carrier is used, and why not; a device
	// that fails or is not as fast as it could be. Nothing is logged for each packet. No
	// lock that packets need is held meanwhile, but a handler that waits delays probes. It
	// must not call SetTopology.
	Log *slog.Logger
	// Simulation is for tests and simulators.
	Simulation Simulation
}

// TCP is what a Host tells netstack's TCP otherwise than is best in a fabric. The zero
// value changes nothing.
type TCP struct {
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
}

// Simulation makes a Host do the same whenever it is run again.
type Simulation struct {
	// Seed fixes where the selectors start and what they draw; 0 means a
	// random seed.
	Seed uint64
	// Clock is the time to live in instead of the real one. Such a Host does nothing by
	// itself: Device is not read, Receive is called instead; a call on a socket that would
	// wait fails with EAGAIN, and Notifier tells when to try again; a connection that was
	// dialled is still connecting; and deadlines are refused (os.ErrNoDeadline). All
	// calls, the Clock's included, must come from one goroutine. Then Seed and the order of
	// the calls determine everything. Close it for good only: in what order netstack resets
	// what lingers is not determined. Clock does not go with Tunnel.
	Clock Clock
}

// pathDevice is the Device if it encapsulates, or nil.
func (c *Config) pathDevice() PathDevice {
	if d, ok := c.Device.(PathDevice); ok && d.Encapsulates() {
		return d
	}
	return nil
}

// plane is the part of a Config that concerns packets, not connections.
func (c *Config) plane() dataplane.Config {
	return dataplane.Config{
		Address: c.Address, Topology: c.Topology, Device: c.Device, Tunnel: c.Tunnel.plane(),
		Policy: c.Policy, Policies: c.prefixPolicies(), PolicyOptions: c.PolicyOptions, UplinkEncapsulates: c.pathDevice() != nil, Samples: true,
		SprayDatagrams: c.SprayDatagrams, Resequencer: c.Resequencer, Timestamps: c.TCP.Timestamps, Carrier: c.Carrier,
		Seed: c.Simulation.Seed, Clock: c.Simulation.Clock,
	}
}

// validate checks what a Config has besides its plane.
func (c *Config) validate() error {
	c.Address = c.Address.Unmap()
	if c.Tunnel != nil {
		return c.validateTunnel()
	}
	return nil
}

func (c *Config) validateTunnel() error {
	if c.Topology != nil || c.Device != nil {
		return errors.New("stack: Config.Tunnel is given, and Topology or Device, too: one way to carry packets is enough")
	}
	if c.Liveness != nil {
		return errors.New("stack: Config.Liveness does not go with Config.Tunnel: nobody knows which links its paths take")
	}
	if c.Simulation.Clock != nil {
		return errors.New("stack: Config.Simulation.Clock does not go with Config.Tunnel, whose datagrams live in real time")
	}
	if c.Carrier != encap.CarrierIPIP {
		return fmt.Errorf("stack: Config.Carrier %v does not go with Config.Tunnel, which carries packets in UDP", c.Carrier)
	}
	if !c.Address.Is4() {
		return fmt.Errorf("stack: Config.Address %v is not an IPv4 address", c.Address)
	}
	if p := c.plane(); c.Tunnel.Underlay != nil && p.MTU() < 576 {
		return fmt.Errorf("stack: Config.Tunnel.Underlay leaves packets of %d bytes, wanted are 576", p.MTU())
	}
	return nil
}
