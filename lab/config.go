package lab

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"weft/fabric"
	"weft/internal/exitcode"
	"weft/internal/kernel"
	"weft/topology"
	"weft/topology/graph"
)

// Config describes a lab: a fabric in network namespaces.
type Config struct {
	Name     string             // [a-z0-9]{1,12}; "" is DefaultName
	Topology *topology.Topology // links that are down in it are built too

	// Graph, if not nil, is built instead of a Topology. Its switches run FRR, which must be
	// installed, and learn all routes by BGP. Nodes and links have the graph's numbers. Ports
	// without a name are called p0 and so on, switches without an AS get one.
	Graph *graph.Graph
	BFD   bool // the switches of a Graph watch their links by BFD, too, each 100 ms

	// Only, if not empty, lists the nodes to build, with the links between them. To these
	// nodes all other links are down.
	Only []topology.NodeID

	// Unlimited leaves out rates and queues: links are as fast as the machine,
	// and super-segments cross them whole. RateMbit, QueueBytes and BurstBytes
	// must then be 0.
	Unlimited bool

	// RateMbit is the rate of links for which the topology has none, in Mbit/s, in each
	// direction, Ethernet headers included; 0 means 20.
	RateMbit float64

	// QueueBytes is the size of the queue of a port of RateMbit, in bytes; 0 means 75000,
	// 50 full packets. Ports of another rate have a queue in proportion, as in DRB's
	// testbed (§6). The kernel bounds the queue as a number of full packets, and each class
	// of service has one: see limitPort. A super-segment of up to BurstBytes counts as one
	// packet.
	QueueBytes int

	BurstBytes  int // tbf burst of every port, bytes; 0 is 3200, two full packets
	MTU         int // of every link, bytes; 0 is 1500. Links between switches that lead by paths (Balance) have 20 more
	GSOMaxBytes int // largest super-segment that a host's kernel builds; 0 is the kernel's own limit. Those over BurstBytes are cut at the first port

	// Routing is how the switches of a Topology spread what goes up without an outer header:
	// one of fabric.Routings; "" is fabric.RoutingECMP.
	Routing string

	// SRv6 makes the nodes forward by labels in IPv6, too. Super-segments of hosts that use
	// them must leave room for 40 bytes in the MTU, which must be 1280 at least.
	SRv6 bool

	Meter *Meter // has the switches' ports metered; nil: they are not

	// Balance is how the switches spread what hosts send over the next hops of their routes:
	// rb, rrb, drb, letflow, drill, conga or luopan, with parameters as in fabric.BalanceConfig;
	// two-level, which is Routing; or classifier, which is that and, in a lab of Hold,
	// Lab.Classify. "", routes and ecmp: by the kernel's hash of the five-tuple. With conga and
	// luopan ports that have a rate are metered (Meter).
	Balance string

	// Progress, if not nil, is called with the number of steps of building that are done,
	// and with their total. Calls come from several goroutines, one at a time.
	Progress func(done, total int)
}

// DefaultName is the lab's name where none is given.
const DefaultName = "lab"

// maxLabNodes bounds a lab: a namespace costs about 1 MB of kernel memory.
const maxLabNodes = 1500

var labName = regexp.MustCompile(`^[a-z0-9]{1,12}$`)

// checkLabName makes sure that no lab's namespaces can be taken for another's:
// with no dash in it, the prefix weft-NAME- is a lab's own.
func checkLabName(name string) error {
	if !labName.MatchString(name) {
		return exitcode.AsUsage(fmt.Errorf("lab name %q: must be 1 to 12 of the letters a to z and digits", name))
	}
	return nil
}

// complete returns the configuration with its defaults filled in.
func (c Config) complete() (Config, error) {
	c, err := c.completed()
	return c, exitcode.AsUsage(err)
}

func (c Config) completed() (Config, error) {
	if c.Name == "" {
		c.Name = DefaultName
	}
	if err := checkLabName(c.Name); err != nil {
		return c, err
	}
	if fabric.RoutingOf(c.Balance) == fabric.RoutingTwoLevel {
		c.Routing = fabric.RoutingTwoLevel
	}
	c.Balance = fabric.CanonicalBalance(c.Balance) // the same lab
	if c.Routing == fabric.RoutingECMP {
		c.Routing = "" // the same lab
	}
	if err := c.setPlant(); err != nil {
		return c, fmt.Errorf("lab %s: %w", c.Name, err)
	}
	if err := c.checkOnly(); err != nil {
		return c, err
	}
	c.Only = slices.Compact(slices.Sorted(slices.Values(c.Only)))
	if n := c.numNodes(); n > maxLabNodes {
		return c, fmt.Errorf("lab %s: %s has %d nodes, a lab at most %d; choose a smaller topology", c.Name, c.plant(), n, maxLabNodes)
	}
	if c.Meter == nil && !c.Unlimited && fabric.BalanceRoom(c.Balance) > 0 {
		c.Meter = &Meter{} // on which conga and luopan live
	}
	c.MTU = cmp.Or(c.MTU, 1500)
	if !c.Unlimited {
		c.RateMbit = cmp.Or(c.RateMbit, 20)
		c.QueueBytes = cmp.Or(c.QueueBytes, 75000)
		c.BurstBytes = cmp.Or(c.BurstBytes, 3200)
	}
	return c, c.check()
}

// setPlant checks what is to be built, and completes it.
func (c *Config) setPlant() error {
	switch {
	case c.Graph == nil && c.Topology == nil:
		return errors.New("Topology is missing; use topology.Parse(\"fat-tree:k=4\")")
	case c.Graph == nil && c.BFD:
		return errors.New("BFD is for the switches of a Graph, which run BGP; leave it out")
	case c.Graph == nil:
		c.Topology = c.Topology.Whole()
		return nil
	case c.Topology != nil:
		return errors.New("Topology and Graph are both given; leave one out")
	case len(c.Only) > 0:
		return errors.New("Only is for a Topology; leave nodes out of the Graph instead")
	case c.SRv6:
		return errors.New("SRv6 is for a Topology; switches that run FRR forward by IP-in-IP only")
	case c.Routing != "":
		return fmt.Errorf("Routing %s is for a Topology; switches that run FRR have ECMP", c.Routing)
	}
	g, err := named(c.Graph)
	if err != nil {
		return err
	}
	c.Graph = g
	return graphPlant{g}.check()
}

// plant is the Topology or the Graph.
func (c Config) plant() plant {
	if c.Graph != nil {
		return graphPlant{c.Graph}
	}
	return c.Topology
}

const (
	minRateMbit, maxRateMbit = 0.1, 30000 // tbf's 32-bit byte rate ends at 34 Gbit/s
	maxMTU                   = 65535
	minGSO, maxGSO           = 2048, 65536 // GSO_MAX_SIZE of a plain veth
	maxQueue                 = 1 << 30
)

func (c Config) check() error {
	switch {
	case c.MTU < kernel.MinMTU || c.MTU > maxMTU:
		return fmt.Errorf("lab %s: MTU %d must be from %d to %d", c.Name, c.MTU, kernel.MinMTU, maxMTU)
	case c.SRv6 && c.MTU < kernel.MinMTU6:
		return fmt.Errorf("lab %s: MTU %d is too small for IPv6, which carries labels: must be %d or more", c.Name, c.MTU, kernel.MinMTU6)
	case c.GSOMaxBytes != 0 && (c.GSOMaxBytes < minGSO || c.GSOMaxBytes > maxGSO):
		return fmt.Errorf("lab %s: largest super-segment of %d bytes must be from %d to %d", c.Name, c.GSOMaxBytes, minGSO, maxGSO)
	}
	if err := c.checkRate(); err != nil {
		return err
	}
	if err := fabric.CheckBalance(c.Balance); err != nil {
		return fmt.Errorf("lab %s: Balance: %w", c.Name, err)
	}
	switch {
	case c.Balance == "":
	case c.Graph != nil:
		return fmt.Errorf("lab %s: Balance is for a Topology: switches that run FRR change their routes at any time, and nobody tells the programs", c.Name)
	case c.Routing == fabric.RoutingTwoLevel && !fabric.Classifies(c.Balance):
		return fmt.Errorf("lab %s: Balance %s leaves alone packets with a mark, and Routing %s marks what goes up: leave one out", c.Name, c.Balance, c.Routing)
	}
	return c.checkMeter()
}

func (c Config) checkRate() error {
	frame := c.MTU + fabric.BalanceRoom(c.Balance) + kernel.EthernetHeader
	switch {
	case c.Unlimited && (c.RateMbit != 0 || c.QueueBytes != 0 || c.BurstBytes != 0):
		return fmt.Errorf("lab %s: rate %g Mbit/s, queue %d and burst %d bytes are given, but links are unlimited: leave them 0, or Unlimited out", c.Name, c.RateMbit, c.QueueBytes, c.BurstBytes)
	case c.Unlimited:
		return nil
	case !(c.RateMbit >= minRateMbit && c.RateMbit <= maxRateMbit):
		return fmt.Errorf("lab %s: rate %g Mbit/s must be from %g to %d", c.Name, c.RateMbit, minRateMbit, maxRateMbit)
	case c.BurstBytes < frame || c.BurstBytes > maxQueue:
		return fmt.Errorf("lab %s: burst of %d bytes does not hold a packet of %d; raise it", c.Name, c.BurstBytes, frame)
	case c.QueueBytes < frame || c.QueueBytes > maxQueue:
		return fmt.Errorf("lab %s: queue of %d bytes does not hold a packet of %d; raise it", c.Name, c.QueueBytes, frame)
	}
	for l := range c.plant().Links() {
		if mbit := c.linkRate(l.ID); mbit < minRateMbit || mbit > maxRateMbit {
			return fmt.Errorf("lab %s: link %s: rate %g Mbit/s must be from %g to %d: change it in the topology, or leave rates out there, and --rate sets them", c.Name, c.plant().LinkName(l.ID), mbit, minRateMbit, maxRateMbit)
		}
	}
	return nil
}

// linkMTU returns the MTU of a link by the node at its lower end. What leaf switches lead by
// paths has an outer header between switches.
func (c Config) linkMTU(lower topology.Node) int {
	if lower.Layer == topology.LayerHost {
		return c.MTU
	}
	return c.MTU + fabric.BalanceRoom(c.Balance)
}

// linkRate returns a link's rate in Mbit/s.
func (c Config) linkRate(l topology.LinkID) float64 {
	return cmp.Or(c.plant().Rate(l), c.RateMbit)
}

// queueBytes returns the queue of a port of a rate in Mbit/s, which holds a
// packet at least.
func (c Config) queueBytes(mbit float64) int {
	bytes := float64(c.QueueBytes) * mbit / c.RateMbit
	return max(c.MTU+fabric.BalanceRoom(c.Balance)+kernel.EthernetHeader, int(min(bytes, maxQueue)))
}

// namespace names a node's network namespace.
func (c Config) namespace(node string) string { return labPrefix(c.Name) + node }

func labPrefix(name string) string { return "weft-" + name + "-" }

// portName names the device of a node's port.
func (c Config) portName(id topology.NodeID, port int) string {
	if c.Graph != nil {
		return fabric.GraphPorts(c.Graph, graph.NodeID(id))[port].Name
	}
	return fmt.Sprintf(fabric.DefaultPortFormat, port)
}

// Size returns the numbers of hosts, switches and links of the fabric.
func (c Config) Size() (hosts, switches, links int) {
	p := c.plant()
	return p.NumHosts(), p.NumNodes() - p.NumHosts(), p.NumLinks()
}

// HasRates reports whether some link has a rate of its own.
func (c Config) HasRates() bool {
	for l := range c.plant().Links() {
		if c.plant().Rate(l.ID) != 0 {
			return true
		}
	}
	return false
}
