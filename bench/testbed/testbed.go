// Package testbed runs hosts of all kinds on a fabric: weft hosts under any policy, and
// the kernel's own TCP to compare with. The fabric is either real, made of network
// namespaces and the kernel's routing tables, or in memory.
package testbed

import (
	"context"
	"fmt"
	"net"
	"time"

	"weft/bench/named"
	"weft/encap"
	"weft/internal/simnet"
	"weft/lab"
	"weft/policy"
	"weft/resequencer"
	"weft/stack"
	"weft/topology"
	"weft/topology/graph"
)

// Row is a kind of host.
type Row struct {
	Name   string
	Label  string // in words, with the units of a policy's own; Config.Describe has those of a run
	about  string // of Label, without how packets are spread
	Source string // where it comes from
	Kernel bool   // the kernel's TCP
	MPTCP  bool
	// Subflows of MPTCP; 0: lab.MPTCPSubflows.
	Subflows int
	// Congestion is the congestion control of the kernel's TCP; "": cubic.
	Congestion string
	// Policy is how weft spreads packets; "": not at all. For the kernel's TCP the
	// program at the host's uplink spreads them (hostprog.Spray).
	Policy string
	// Gateway passes the kernel's TCP through a dataplane.Gateway both ways.
	Gateway bool
	// Shipped leaves the kernel's settings as weft host makes them.
	Shipped bool
}

// Resequences reports whether the row's hosts restore the order of packets, and count
// them.
func (r Row) Resequences() bool { return !r.Kernel || r.Gateway }

// congestionControl is what every row uses; netstack's is fixed by its Host.
const congestionControl = "cubic"

// Rows returns every kind of host: the kernel's, and one per policy.
func Rows() []Row {
	rows := []Row{
		{Name: "kernel-ecmp", Label: "kernel TCP over kernel ECMP, " + congestionControl, Source: "baseline", Kernel: true},
		{Name: "kernel-mptcp", Label: "kernel MPTCP, 8 subflows, " + congestionControl, Source: "baseline", Kernel: true, MPTCP: true},
		weftRow("drb", Row{Name: "kernel-drb", Label: "kernel TCP without timestamps, weft at the uplink", Kernel: true}),
		weftRow(policy.Default, Row{Name: "host-auto", Label: "kernel TCP, weft host's defaults", Kernel: true, Shipped: true}),
		weftRow("presto", Row{Name: "gateway-presto", Label: "kernel TCP through weft", Kernel: true, Gateway: true}),
	}
	for _, name := range policy.Names() {
		rows = append(rows, weftRow(name, Row{Name: name, Label: "weft"}))
	}
	return rows
}

// weftRow completes a row that spreads packets by a policy.
func weftRow(name string, r Row) Row {
	p, _ := policy.New(name, policy.Options{})
	unit := p.Unit.String()
	if p.Adapts {
		unit = "unit that fits the links"
	}
	r.about, r.Policy, r.Source = r.Label, name, p.Source
	r.Label = r.label(unit, p)
	return r
}

func (r Row) label(unit string, p policy.Policy) string {
	return fmt.Sprintf("%s, each %s by %s, %s", r.about, unit, p.How(), congestionControl)
}

// Describe is a row's Label with the units that its hosts cut with this configuration.
func (c *Config) Describe(r Row) string {
	p, err := policy.New(r.Policy, c.Policy)
	if r.about == "" || err != nil {
		return r.Label
	}
	p = p.At(c.Policy.Rate(c.known().Slowest()))
	return r.label(p.Unit.String(), p)
}

// Select returns the rows with the given names, in that order.
func Select(names []string) ([]Row, error) {
	return named.Select("policy", Rows(), func(r Row) string { return r.Name }, names)
}

// Config is what all testbeds need.
type Config struct {
	Topology *topology.Topology
	// Graph is the fabric in place of a Topology: see InGraph. Known then is what one of its
	// hosts sees.
	Graph *graph.Graph
	// Known, if not nil, is the fabric that hosts are told of: the same one, with other
	// rates, say, or none.
	Known       *topology.Topology
	RateMbit    float64 // of every link, Mbit/s, each direction
	Policy      policy.Options
	Resequencer resequencer.Config
	Seed        uint64
	Carrier     encap.Carrier // of what weft hosts send by a path
	Meter       *lab.Meter    // what switches measure; nil: nothing
	Balance     string        // how switches balance, as in lab.Config; not in memory
	// Adjust, if not nil, may change the configuration of a weft host.
	Adjust func(topology.Node, *stack.Config)
}

// known is the fabric as hosts are told that it is.
func (c *Config) known() *topology.Topology {
	if c.Known != nil {
		return c.Known
	}
	return c.Topology
}

// Testbed is a fabric on which hosts can be started, one kind at a time.
type Testbed interface {
	Kind() string // "in network namespaces", "in memory"
	// Supports says why a row cannot run here, nil if it can.
	Supports(Row) error
	// Start starts a host of the given kind at every host of the topology.
	Start(context.Context, Row) (*Session, error)
	// Close leaves nothing behind.
	Close() error
}

// Endpoint is a host's sockets; *stack.Host is one.
type Endpoint interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	Listen(network, address string) (net.Listener, error)
}

// Host is a host that runs. Address is its IP address.
type Host struct {
	Endpoint
	Address string
}

// Session is a set of hosts of one kind, by the topology's host numbers.
type Session struct {
	Hosts []Host
	// Stacks are the same hosts where they are weft's; empty in rows of the
	// kernel's TCP.
	Stacks   []*stack.Host
	counters func() (Counters, error)
	close    func() error
}

// Counters are what a session's hosts and links have counted since it began.
type Counters struct {
	Retransmits int64
	// SYNRetransmits are those of them that open a connection, and Timeouts the
	// retransmissions that a timer began, in rows of the kernel's TCP.
	SYNRetransmits, Timeouts int64
	// Subflows are of MPTCP where weft opens them.
	Subflows lab.SubflowCounts
	// TCP data packets that were behind a later one of their flow (RFC 4737),
	// retransmissions included, before and after the resequencer. Rows that
	// have one only; see Row.Resequences.
	OutOfOrderBefore, OutOfOrderAfter int64
	// Links has the bytes sent by each link's two ports, Ethernet headers
	// included, by topology.LinkID.
	Links []LinkBytes
}

// LinkBytes counts what a link carried: towards the core, and away from it.
type LinkBytes struct {
	Up, Down uint64
	// The moments at which they were read. A lab's nodes are read one after the other,
	// and each may wait for a lock of the kernel. Zero: all were read at one moment.
	UpAt, DownAt time.Time
}

// Counters reads all counters.
func (s *Session) Counters() (Counters, error) { return s.counters() }

// Close stops the hosts and undoes what was set up for them. It resets the
// connections of weft's hosts; those of the kernel's live as long as their
// sockets.
func (s *Session) Close() error { return s.close() }

// open starts a weft host per host of the topology, over the device that open gives for its
// configuration.
func open(c Config, row Row, open func(topology.Node, stack.Config) (stack.Device, error)) ([]*stack.Host, error) {
	var hosts []*stack.Host
	for n := range c.Topology.Hosts() {
		h, err := openOne(c, row, n, open)
		if err != nil {
			closeAll(hosts)
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

func openOne(c Config, row Row, n topology.Node, open func(topology.Node, stack.Config) (stack.Device, error)) (*stack.Host, error) {
	var sc stack.Config
	c.Configure(row, n, &sc)
	dev, err := open(n, sc)
	if err != nil {
		return nil, err
	}
	sc.Device = dev
	h, err := stack.New(sc)
	if err != nil {
		dev.Close()
	}
	return h, err
}

// Configure sets everything of a weft host but its device and its clock.
func (c *Config) Configure(row Row, n topology.Node, sc *stack.Config) {
	sc.Address = c.Topology.EmbeddedAddr(n.ID)
	sc.Topology = c.known()
	c.spread(row, n.ID, sc)
	if c.Adjust != nil {
		c.Adjust(n, sc)
	}
}

// spread sets how a host's packets are spread and put in order.
func (c *Config) spread(row Row, id topology.NodeID, sc *stack.Config) {
	sc.Policy = row.Policy
	sc.PolicyOptions = c.Policy
	sc.Resequencer = c.Resequencer
	if p, err := policy.New(row.Policy, c.Policy); err == nil && !p.Sprays() {
		// Flows keep their order: a hole is a loss, which TCP is to see at once.
		sc.Resequencer.Discipline = resequencer.Off
	}
	sc.Carrier = c.Carrier
	sc.PolicyOptions.LinkRateBits = c.RateMbit * 1e6
	sc.Simulation.Seed = c.Seed<<20 + uint64(id) + 1
	if c.Meter != nil {
		sc.PolicyOptions.Tau = c.Meter.Tau
	}
}

// Links returns the links that a simulated fabric has.
func (c *Config) Links() simnet.Config {
	links := simnet.Config{RateBits: int64(c.RateMbit * 1e6), Seed: c.Seed}
	if m := c.Meter; m != nil { // without RED, which memory.Start refuses
		links.Meter = &simnet.Meter{ECNBytes: m.ECNBytes, Tau: m.Tau, QCMUnit: m.QCMUnit}
	}
	return links
}

// Count adds up what weft hosts have counted; Links is left to the caller.
func Count(hosts []*stack.Host) (c Counters) {
	for _, h := range hosts {
		st := h.Stats()
		c.Retransmits += int64(st.TCP.Retransmits)
		c.OutOfOrderBefore += int64(st.Resequencer.ArrivedOutOfOrder)
		c.OutOfOrderAfter += int64(st.Resequencer.DeliveredOutOfOrder)
	}
	return c
}

// CountLinks reads the links of a simulated fabric.
func CountLinks(n *simnet.Network, t *topology.Topology) []LinkBytes {
	all := make([]LinkBytes, t.NumLinks())
	for i := range all {
		up, down := n.Link(topology.LinkID(i))
		all[i] = LinkBytes{Up: up.Bytes, Down: down.Bytes}
	}
	return all
}

func closeAll(hosts []*stack.Host) {
	for _, h := range hosts {
		h.Close()
	}
}

// weftSession makes a session of weft hosts; links reads the link counters.
func weftSession(hosts []*stack.Host, links func() ([]LinkBytes, error), end func()) *Session {
	s := &Session{Stacks: hosts}
	for _, h := range hosts {
		s.Hosts = append(s.Hosts, Host{h, h.Address().String()})
	}
	s.counters = func() (c Counters, err error) {
		c = Count(hosts)
		c.Links, err = links()
		return c, err
	}
	s.close = func() error {
		closeAll(hosts)
		end()
		return nil
	}
	return s
}
