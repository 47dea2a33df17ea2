package spray

import (
	"fmt"
	"time"

	"weft/flowcell"
	"weft/internal/paths"
	"weft/policy"
	"weft/topology"
)

// HostsConfig configures all hosts of a simulation.
type HostsConfig struct {
	// Topology is what hosts know of the fabric. All of its links have rates.
	Topology *topology.Topology
	// Paths, if not nil, says which paths a pair has, in place of Topology. Policies that
	// look at congestion or at groups of paths then do not work. List numbers of sets need
	// differ only for one src.
	Paths   func(src, dst topology.NodeID) topology.PathSet
	Policy  string // one of policy.Names
	Options policy.Options
	Seed    uint64
	// RackSamples makes the hosts of a rack share luopan's samples, as in the paper,
	// where the rack's switch samples (Luopan §3.2). Otherwise each host samples for
	// itself.
	RackSamples bool
	// SamplesOnly makes luopan follow samples alone, as in the paper (Luopan §3.2).
	// Otherwise it also counts what was sent since.
	SamplesOnly bool
	// Turns has paths take turns, from which luopan's samples depart; see package luopan.
	Turns bool
	// AckUnits makes a flow's pure acknowledgements a unit of the policy, where units are
	// flowcells or flowlets. Otherwise each has a path of its own, by the policy's Rule.
	AckUnits bool
	// Tau is the time constant of CONGA's rate estimators (CONGA §3.6). 0: 160 µs.
	Tau time.Duration
}

// Hosts chooses the paths for all hosts, as package stack does and with the same selectors.
type Hosts struct {
	config HostsConfig
	policy policy.Policy
	topo   *topology.Topology
	shape  shape
	quiver *topology.Quiver // of topo, nil until needed
	valid  uint32           // counts topologies
	pairs  pairTable
	paths  pathTable

	aware   aware // nil if the policy goes by nothing but its Rule
	marking *informed
	sampled *sampled
	heeding *heeding
}

// Flow is the state of a flow at both of its ends: how the sender cuts it, and the pairs
// whose selectors its data and its acknowledgements use. The owner keeps it between Open
// and Close, and may move it.
type Flow struct {
	cutter     flowcell.Cutter
	hash, back uint64  // of its data's five-tuple, and of its acknowledgements'
	data, ack  int32   // pairs
	via        int32   // the path of the unit under way; -1: none
	bound      uint32  // the pair's, when via was last found alive
	acks       ackUnit // with HostsConfig.AckUnits
	heeded     *heeded // nil if the policy does not heed what becomes of packets
}

// NewHosts returns hosts without flows. An error names the field that is wrong.
func NewHosts(c HostsConfig) (*Hosts, error) {
	if c.Topology == nil && c.Paths == nil {
		return nil, fmt.Errorf("spray: Topology is missing")
	}
	p, err := policy.New(c.Policy, c.Options)
	if err != nil {
		return nil, fmt.Errorf("spray: %w", err)
	}
	return hostsBy(c, p.At(c.Options.Rate(c.Topology.Slowest())))
}

// hostsBy is NewHosts with a policy that need not be in the table.
func hostsBy(c HostsConfig, p policy.Policy) (*Hosts, error) {
	h := &Hosts{
		config: c, policy: p, topo: c.Topology,
		pairs: newPairTable(), paths: pathTable{policy: p, byKey: make(map[string]*paths.Group)},
	}
	if c.Paths != nil {
		if p.Aware != 0 || p.Groups {
			return nil, fmt.Errorf("spray: Policy is %s; want one that looks neither at congestion nor at groups of paths, where Paths are given", c.Policy)
		}
		return h, nil
	}
	h.shape = shapeOf(c.Topology)
	if err := h.beAware(); err != nil {
		return nil, fmt.Errorf("spray: %w", err)
	}
	return h, nil
}

// Open begins a flow. tuple is the five-tuple of its data; it is not kept.
func (h *Hosts) Open(f *Flow, src, dst topology.NodeID, tuple *flowcell.FiveTuple) {
	back := flowcell.FiveTuple{Src: tuple.Dst, Dst: tuple.Src, SrcPort: tuple.DstPort, DstPort: tuple.SrcPort, Proto: tuple.Proto}
	*f = Flow{hash: tuple.Hash(h.config.Seed), back: back.Hash(h.config.Seed), via: -1, acks: ackUnit{via: -1}}
	f.cutter = flowcell.NewCutter(f.hash)
	f.data = h.use(src, dst)
	f.ack = h.use(dst, src)
	f.bound = h.pairs.list[f.data].bound
	if h.heeding != nil {
		f.heeded = h.heeding.begin(f.hash)
	}
}

// Close ends a flow. The state of its hosts may then be forgotten.
func (h *Hosts) Close(f *Flow) {
	h.pairs.leave(f.data)
	h.pairs.leave(f.ack)
}

// Data returns the path and the Number of a data packet. payload is its payload in bytes
// from seq on, wire its length with all headers. path is -1 if hosts of a rack need none.
// If no path is known to be live, it is any path.
func (h *Hosts) Data(f *Flow, seq uint32, payload, wire int, now time.Duration) (path int, n flowcell.Number) {
	p := h.pair(f.data)
	if p.paths == nil {
		return -1, 0
	}
	unit := h.policy.Unit
	switch {
	case unit.Cuts():
		path, n = h.cut(f, p, seq, payload, now)
		if !unit.Numbers() {
			n = p.counted()
		}
	case unit.Kind == flowcell.UnitFlow:
		path, _ = p.paths.ByHash(f.hash)
	default:
		path, n = h.begin(f, p, -1, now), p.counted()
	}
	if h.aware != nil {
		h.aware.sent(p, path, wire, now)
	}
	if h.heeding != nil {
		h.heeding.follow(f, seq, payload, path)
	}
	return path, n
}

// cut finds the path of a packet's unit.
func (h *Hosts) cut(f *Flow, p *pair, seq uint32, payload int, now time.Duration) (path int, n flowcell.Number) {
	if f.bound != p.bound {
		if f.bound = p.bound; !p.paths.Has(int(f.via)) {
			f.cutter.End()
			f.via = -1
		}
	}
	n, begins := f.cutter.Next(h.policy.Unit, seq, payload, 1, now)
	if begins {
		f.via = int32(h.begin(f, p, int(f.via), now))
	}
	return int(f.via), n
}

// begin returns the path of a unit that begins; last is that of the unit before, or
// -1.
func (h *Hosts) begin(f *Flow, p *pair, last int, now time.Duration) int {
	if h.aware == nil {
		path, _ := p.of(f.hash).data.Next(f.hash)
		return path
	}
	return h.aware.choose(f, p, p.paths.Components[p.paths.Component(f.hash)].Order, last, now)
}

// SetTopology makes hosts use the live paths of t, which is of the same fabric.
func (h *Hosts) SetTopology(t *topology.Topology) {
	h.topo, h.quiver = t, nil
	h.valid++
}

// use finds or makes a pair.
func (h *Hosts) use(src, dst topology.NodeID) int32 {
	i, added := h.pairs.use(src, dst)
	if added {
		h.look(&h.pairs.list[i])
	}
	return i
}

// pair returns a pair of a flow, which has taken note of the topology.
func (h *Hosts) pair(i int32) *pair {
	p := &h.pairs.list[i]
	if p.valid != h.valid {
		h.look(p)
	}
	return p
}

// look has a pair find its paths, and its selectors if they are others.
func (h *Hosts) look(p *pair) {
	p.valid = h.valid
	var set topology.PathSet
	viewer := topology.NodeID(-1)
	if h.config.Paths != nil {
		set, viewer = h.config.Paths(p.src, p.dst), p.src
	} else {
		set = h.topo.PathsOrAll(p.src, p.dst)
	}
	if set.Direct() {
		return
	}
	found := h.paths.of(viewer, set, h.componentsOf(p, set))
	if found == p.paths {
		return
	}
	p.paths = found
	h.bind(p)
}

// componentsOf are those of a pair's paths, nil where the policy takes them for one.
func (h *Hosts) componentsOf(p *pair, set topology.PathSet) []topology.Group {
	if !h.policy.Groups || len(set.Live) < 2 {
		return nil
	}
	if h.quiver == nil {
		h.quiver = h.topo.Quiver()
	}
	return h.quiver.Groups(p.src, p.dst)
}

// PathOfFlow returns the path of a flow's data by a policy that keeps each flow to one, and
// how many paths are live. Where there is no choice paths is 0.
func (h *Hosts) PathOfFlow(f *Flow) (path, paths int) {
	p := h.pair(f.data)
	if p.paths == nil {
		return 0, 0
	}
	path, _ = p.paths.ByHash(f.hash)
	return path, len(p.paths.Live)
}
