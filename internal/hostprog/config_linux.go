package hostprog

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"weft/conga"
	"weft/encap"
	"weft/flowcell"
	"weft/internal/elephant"
	"weft/internal/kernel"
	"weft/internal/paths"
	"weft/policy"
	"weft/topology"
)

// SprayConfig configures the program at a host's uplink.
type SprayConfig struct {
	Uplink string // an Ethernet device

	// Uplinks are all devices of a host that has several, in the order of
	// topology.Topology.Uplinks; Uplink is one of them. The program runs at each, and hands a
	// packet over to the one that its path begins with. nil: all paths are by Uplink.
	Uplinks []Uplink

	// Addresses are this host's own, 1 to 16 of each family. The program sprays packets
	// from these. It leaves others alone, since a bouncing switch accepts only packets
	// whose inner source is the outer one.
	Addresses []netip.Addr

	// Behind are prefixes behind hosts. The program sprays packets from those that are behind this
	// host, whose Host is one of Addresses, and leads packets to the others by the paths to the
	// host that they are behind. Cut is for them, too. At most 1,024 may be behind this host.
	Behind []Behind
	// Forwarded, if not nil, is where the program notes the TCP connections that this host forwards.
	Forwarded *Forwarded
	// MTU is the network's, in bytes, and Narrow says to which racks, by their prefixes, only
	// smaller packets arrive without the outer header. What is forwarded and is longer leaves as it
	// is. With Forwarded the program lowers the MSS of its connections to that. MTU 0 is the
	// uplink's.
	MTU    int
	Narrow map[netip.Prefix]int
	// CutForwarded has super-segments that this host forwards cut into packets as by CutLate, also
	// where TCP cuts its own. It is for policies of packets, and hosts with one uplink.
	CutForwarded bool

	Topology *topology.Topology
	Self     topology.NodeID // the host that this is
	Policy   policy.Policy   // one for which Policy.AtUplink is true

	// Topology6 is the same fabric as an IPv6 address of this host sees it
	// (topology.FromGraph): bouncing switches and racks have IPv6 addresses there. nil:
	// IPv6 leaves as it is. With IP-in-IP packets are IPv6 in IPv6 (RFC 2473). A policy that
	// draws paths draws any live one for IPv6, as nothing is sampled there.
	Topology6 *topology.Topology

	// Carrier is IP-in-IP or SRv6. The switches must have its routes. With SRv6 by labels
	// the source is topology.Addr6 of the IPv4 address. Where the fabric is data, SRv6 is to
	// the SIDs of the bouncing switches, from topology.Topology.SIDSource.
	Carrier encap.Carrier

	// Cut are those of Addresses whose TCP the program cuts into flowcells: the kernel's.
	// By the rule of flowcell.Cutter, the program writes the Number of the flowcell into
	// the IPv4 ID, or the IPv6 flow label, of each packet with payload. Cut is for policies of flowcells only.
	// Senders from other Addresses, such as an embedded stack, write the numbers
	// themselves. The program remembers the flowcells of 65,536 flows, which takes 6 MB
	// of kernel memory. Above that it forgets one of those idle longest, which begins
	// again from its first flowcell. Under policies that draw paths (luopan, rand) it
	// remembers the flows of all Addresses, and draws again for a forgotten one.
	Cut []netip.Addr

	// Conga is what the policy conga goes by, without MaxDestinations and Seed. The program
	// then also takes CONGA's marks in and off at the uplink's ingress.
	Conga conga.Config

	// Datagrams are sprayed one by one, and UDP_SEGMENT super-packets as a whole, in the order
	// of the policy's rule, whatever its unit. Each gets a flowcell.Place, so that receivers
	// with OrderConfig.Datagrams put them in order; others must not get any. They need DF,
	// which the kernel sets by itself and the program on super-packets. All other UDP
	// keeps to one path for each pair of hosts. The program remembers 65,536 flows.
	Datagrams Datagrams

	// Elephants are what a scheduler of elephants needs of the program: Spray.SetPins and, with
	// PinAndCount, Spray.Elephants. Under conga, which tells receivers its paths, no flow can be pinned.
	Elephants elephant.Duty

	// PerPacketTCP makes the kernel's own TCP send single packets rather than
	// super-segments, between which a policy of packets could not choose. It sets
	// gso_max_segs of the uplink to 1. Existing connections keep the old setting until
	// their route is looked up again. It costs the processor time of segmentation.
	PerPacketTCP bool

	// CutLate, with PerPacketTCP, leaves super-segments whole as far as the uplink's egress.
	// There the program hands them to a device that cuts them and sends each packet by
	// the uplink again (cutter). So TCP and routing see one super-segment rather than 45
	// packets. While that device cannot be had, or with Uplinks, PerPacketTCP is as without:
	// see Spray.CutsLate. TCP does not hear of what the uplink's queue drops.
	CutLate bool

	// SuperBytes, if more than 64 KB, lets the kernel's own TCP hand over super-segments of
	// so many bytes over IPv4, at most kernel.MaxLongSuper: see Spray.Supers. It sets
	// gso_ipv4_max_size of the uplink. With ReceiveLong it sets gro_ipv4_max_size, too, which
	// where what arrives is put in order is OrderConfig.SuperBytes.
	SuperBytes  int
	ReceiveLong bool

	// Require makes packets to other racks of the fabric leave encapsulated or not at
	// all. A packet that cannot be encapsulated is dropped rather than routed by the
	// fabric's own routes. Patience then has no effect.
	Require bool

	// StartPlain makes packets to all racks go plain until SetPlain says otherwise, but for
	// racks, by their prefixes, for which StartCarried, if not nil, is true.
	StartPlain   bool
	StartCarried func(rack netip.Prefix) bool

	// Patience is how long after the last Beat packets are still encapsulated, at most an
	// hour. Later, and before the first Beat, they go plain. So a process that is dead or
	// hangs does not steer packets into paths that have failed since. 0: for ever.
	// Where StartCarried is not nil, attaching is the first Beat, and a Lease.
	Patience time.Duration
}

// SprayPatience is the usual SprayConfig.Patience. A table of paths that is a second
// old is rarely wrong.
const SprayPatience = time.Second

// maxPatience bounds SprayConfig.Patience and DetourConfig.Patience.
const maxPatience = time.Hour

// maxOwn bounds Addresses; the size of the map own in bpf/spray.c.
const maxOwn = 16

func (c SprayConfig) check() error {
	if c.Topology == nil {
		return errors.New("Topology is missing; use topology.Parse")
	}
	if !c.Topology.Valid(c.Self) || int(c.Self) >= c.Topology.NumHosts() {
		return fmt.Errorf("Self is %d, which is no host of %s", c.Self, c.Topology)
	}
	if err := c.checkAddresses(); err != nil {
		return err
	}
	if err := c.checkUplinks(); err != nil {
		return err
	}
	for _, a := range c.Cut {
		if !slices.Contains(c.Addresses, a) {
			return fmt.Errorf("Cut: %v is not among Addresses; add it there or leave it out", a)
		}
	}
	if len(c.Cut) > 0 && c.Policy.Unit.Kind != flowcell.UnitFlowcell {
		return fmt.Errorf("Cut with policy %s, which chooses per %v; leave it out or use a policy of flowcells", c.Policy.Name, c.Policy.Unit)
	}
	if c.PerPacketTCP && c.Policy.Unit.Kind != flowcell.UnitPacket {
		return fmt.Errorf("PerPacketTCP with policy %s, which chooses per %v; leave it out or use a policy of packets", c.Policy.Name, c.Policy.Unit)
	}
	if err := checkBehind(c.ownBehind()); err != nil {
		return fmt.Errorf("Behind: %w", err)
	}
	if c.CutForwarded && c.Policy.Unit.Kind != flowcell.UnitPacket {
		return fmt.Errorf("CutForwarded with policy %s, which chooses per %v; leave it out or use a policy of packets", c.Policy.Name, c.Policy.Unit)
	}
	if c.CutLate && !c.PerPacketTCP {
		return errors.New("CutLate without PerPacketTCP, which cuts at all; set both")
	}
	if c.Carrier != encap.CarrierIPIP && c.Carrier != encap.CarrierSRv6 {
		return fmt.Errorf("Carrier is %v, which the spray program does not write; use ipip or srv6", c.Carrier)
	}
	if c.Carrier == encap.CarrierSRv6 {
		for _, t := range []*topology.Topology{c.Topology, c.Topology6} {
			if t == nil {
				continue
			}
			if err := paths.CheckSRv6(t); err != nil {
				return fmt.Errorf("Carrier srv6: %w", err)
			}
		}
	}
	if c.SuperBytes > kernel.MaxLongSuper || c.SuperBytes < 0 {
		return fmt.Errorf("SuperBytes is %d, must be from 0 to %d", c.SuperBytes, kernel.MaxLongSuper)
	}
	if _, err := c.Conga.WithDefaults(); err != nil {
		return fmt.Errorf("Conga: %w", err)
	}
	if err := c.Datagrams.check(); err != nil {
		return err
	}
	if c.Elephants != elephant.Nothing && c.Policy.Aware == policy.Informed {
		return fmt.Errorf("Elephants with policy %s, under which no flow can be pinned to a path; choose another policy", c.Policy.Name)
	}
	if c.Require && c.StartPlain {
		return errors.New("StartPlain with Require, by which nothing leaves plain: set one of them")
	}
	if c.Patience < 0 || c.Patience > maxPatience {
		return fmt.Errorf("Patience is %v, must be from 0 to %v", c.Patience, maxPatience)
	}
	_, err := choiceOf(c.Policy)
	return err
}

func (c SprayConfig) checkAddresses() error {
	var count [2]int // of IPv4, IPv6
	for _, a := range c.Addresses {
		switch {
		case a.Unmap().Is4():
			count[0]++
		case a.Is6() && c.Topology6 != nil:
			count[1]++
		default:
			return fmt.Errorf("Addresses: %v is not IPv4, and there is no Topology6", a)
		}
	}
	if count[0] < 1 || max(count[0], count[1]) > maxOwn {
		return fmt.Errorf("Addresses are %d of IPv4 and %d of IPv6, must be 1 to %d, and up to %d", count[0], count[1], maxOwn, maxOwn)
	}
	if c.Topology6 == nil {
		return nil
	}
	if _, ok := c.self6(); !ok {
		return errors.New("Topology6: none of Addresses is a host's there")
	}
	return nil
}

// self6 is the host in Topology6.
func (c SprayConfig) self6() (topology.NodeID, bool) {
	for _, a := range c.Addresses {
		if id, ok := c.Topology6.ByAddr(a); ok && a.Is6() {
			return id, true
		}
	}
	return 0, false
}

// cuts is an address's value in the map own of bpf/spray.c.
func (c SprayConfig) cuts(own netip.Addr) uint8 {
	if slices.Contains(c.Cut, own) {
		return ownCuts
	}
	return 0
}
