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

// Config configures a Host. New copies it.
type Config struct {
	// Address is the stack's IPv4 address: one that Topology gives to a host,
	// usually its EmbeddedAddr. Required.
	Address netip.Addr
	// Address6 is the stack's IPv6 address, a global one; zero for none. The fabric must
	// route it to the Host: topology.Addr6 of Address belongs to that, and the operator may
	// have given another.
	Address6 netip.Addr
	// CarryIPv6 makes IPv6 take the paths of Policy where there is no Topology6. The bouncing
	// switches must take IPv6 out of the outer headers of IPv4, and receivers must restore the
	// order of IPv6: probes do not show either. By default IPv6 leaves as it is, and the
	// switches choose its path. In a Tunnel it always takes the Tunnel's.
	CarryIPv6 bool
	// Topology is the fabric as it stands; SetTopology replaces it. Required.
	Topology *topology.Topology
	// Topology6 is the same fabric as Address6 sees it, from topology.FromGraph;
	// SetTopology6 replaces it. nil for none. With it IPv6 takes the paths of Policy, by
	// outer headers of IPv6 to the bouncing switches' IPv6 addresses (RFC 2473), or to their
	// SIDs. With Liveness it does so to racks for which probes over IPv6 have proved that,
	// whatever is proved of IPv4, and else leaves as it is.
	Topology6 *topology.Topology
	// Device carries the packets. Further methods announce what else it can do:
	// SuperDevice, PathDevice. After a successful New the Host owns it and closes it.
	// Required; uplink.NewHost opens one.
	Device Device
	// Carrier takes packets by their paths: encap.CarrierIPIP, the default, to a bouncing
	// switch, or encap.CarrierSRv6 from port to port, if the switches have its routes. Where
	// Topology is data (topology.FromGraph), SRv6 leads to an operator's SIDs of the bouncing
	// switches, from the host's IPv6 address; Topology.CheckSIDs says what is missing.
	// Every policy works with either. The Device carries IP, so encap.CarrierMPLS is
	// refused.
	Carrier encap.Carrier
	// Tunnel, in place of Topology, Device and Carrier, carries the packets in UDP.
	// Address is then any IPv4 address by which the peers know the Host.
	Tunnel *Tunnel

	// Policy names how TCP is spread over the paths; "" means policy.Default. In a Tunnel
	// nobody knows which links the paths share, so a congestion-aware policy follows its
	// Rule there: random.
	Policy string
	// Policies replace Policy for traffic to the addresses in their prefixes, also on
	// accepted connections. The longest prefix counts. At most 1,024. WithPolicy chooses
	// for one connection.
	Policies []PrefixPolicy
	// PolicyOptions adjust all policies: the size of a flowcell, the pause between
	// flowlets, the rate of links where Topology has none.
	PolicyOptions policy.Options
	// SprayDatagrams spreads UDP and other protocols too, each packet by its policy's
	// rule. By default all of them between two hosts keep to one path, since nothing
	// restores their order. (Ports do not count: fragments have none.)
	SprayDatagrams bool

	// Resequencer restores the order of incoming TCP. The least retransmission timeout of
	// the Host's TCP is twice its Hold, 20 ms by default.
	Resequencer resequencer.Config
	// TCP changes options of netstack's TCP.
	TCP TCP

	// Liveness, if not nil, makes the Host find dead paths by itself. It does not work
	// with Tunnel.
	Liveness *Liveness
	// ConnPaths has the Host count for each TCP connection by which paths its packets go, for
	// ConnStats. It costs a look at a table for each packet, and memory: up to 16,384 connections,
	// 15 MB. Above, one idle longest is counted anew.
	ConnPaths bool
	// Log, if not nil, gets each change once: links that go out of use and come back, and
	// why; to which racks the carrier is used, and why not to others; a device that fails
	// or is slower than it could be. The attribute "event" has its stable name
	// (docs/events.md), of which no more than ten a second are told. Nothing is logged for
	// each packet. The Host holds no
	// lock that packets need during a call, but a slow handler delays probes. A handler
	// must not call SetTopology.
	Log *slog.Logger
	// Simulation is for tests and simulators.
	Simulation Simulation
}

// TCP changes options of netstack's TCP from the values that are best in a fabric. The
// zero value changes nothing.
type TCP struct {
	// Timestamps lets TCP use its timestamps option (RFC 7323). By default a Host takes
	// the option out of SYNs, its own and others'. With it netstack measures round trips
	// in whole milliseconds, which in a fabric are all 0 or 1, and leaves slow start for
	// that reason. The option also takes 12 bytes a packet. Its other use is to tell a
	// packet from one that is 4 GB older. For that an old packet must be in flight while
	// 4 GB are sent: no fabric keeps a packet for seconds.
	Timestamps bool
	// RACK turns on netstack's RACK-TLP loss detection (RFC 8985). At 1 % loss it is half
	// as fast again as the classic way. It is off because of its probes: if a receiver
	// holds segments for longer than two round trips, the sender probes, and takes the
	// answer for the repair of a loss (docs/netstack-recovery.md).
	RACK bool
}

// Simulation makes a Host behave the same in every run.
type Simulation struct {
	// Seed determines where the selectors start and what they draw; 0 means a random
	// seed.
	Seed uint64
	// Clock replaces the real time. Such a Host does nothing by itself. It does not read
	// Device: call Receive instead. A call on a socket that would wait fails with EAGAIN,
	// and Notifier tells when to try again. DialContext returns a connection that is still
	// connecting. Deadlines are refused (os.ErrNoDeadline). All calls, including the
	// Clock's, must come from one goroutine. Then Seed and the order of the calls
	// determine everything, except what Close does: in which order netstack resets the
	// remaining connections is not determined. Clock does not work with Tunnel.
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
		Address: c.Address, Address6: c.Address6, Inner6: c.CarryIPv6, Topology: c.Topology, Topology6: c.Topology6, Device: c.Device, Tunnel: c.Tunnel.plane(),
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
	if c.Topology != nil || c.Topology6 != nil || c.Device != nil {
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
	if a := c.Address6; a != (netip.Addr{}) && (!a.Is6() || a.Is4In6() || a.Zone() != "" || !a.IsGlobalUnicast()) {
		return fmt.Errorf("stack: Config.Address6 %v is not a global IPv6 address without a zone", a)
	}
	if p := c.plane(); c.Tunnel.Underlay != nil && p.MTU() < 576 {
		return fmt.Errorf("stack: Config.Tunnel.Underlay leaves packets of %d bytes, wanted are 576", p.MTU())
	}
	return nil
}
