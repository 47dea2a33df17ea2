package spray

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"weft/flowcell"
	"weft/policy"
	"weft/topology"
)

// Packet holds the fields of a packet that switches use.
type Packet struct {
	Src, Dst topology.NodeID // hosts
	Hash     uint64          // of its flow in its direction
	Bytes    int32           // on the wire
	Numbered bool            // its host numbers flowcells, see Numbers
	Number   flowcell.Number // if Numbered
	Mark     Mark
}

// Switch is how all switches of a fabric choose ports where they have a choice.
type Switch interface {
	// Up returns the port up, from 0, by which a switch sends a packet to another rack, or
	// -1 if none leads there. It is called where paths divide: at the source's edge switch
	// and, between pods, at the aggregation switch above. in is the port by which the
	// packet has left the node before.
	Up(sw topology.NodeID, in int32, p *Packet, now time.Duration) int
	// Unit is the unit for which switches choose a path. If it Numbers, hosts cut by it.
	Unit() flowcell.Unit
	// Marks reports whether Pass must be called.
	Marks() bool
	// Down returns by which of its links, by number among those of the leaf that they lead to,
	// the spine above a port sends a packet down. Only SwitchConfig.Parallel leaves a choice.
	Down(port int, p *Packet) int
	// Pass takes a packet that a switch sends by a port, including ports to hosts. It may
	// change the packet's Mark.
	Pass(port int32, p *Packet, now time.Duration)
	// SetTopology makes switches use the live paths of t, which is of the same fabric.
	SetTopology(t *topology.Topology)
}

// Queues is the switches' view of their own ports.
type Queues interface {
	// QueueBytes is the backlog of a port in bytes, with the rest of the packet on the
	// wire.
	QueueBytes(port int32) int
}

// The models of switches.
const (
	switchECMP      = "switch-ecmp"       // per flow, by its hash
	switchWCMP      = "switch-wcmp"       // likewise, by the rates of paths
	switchRB        = "switch-rb"         // per packet, at random
	switchRR        = "switch-rr"         // per packet, in turn
	switchLocal     = "switch-local"      // per flowcell, the shortest queue (Luopan §4.1)
	switchLuopan    = "switch-luopan"     // per flowcell, the best of samples that take no time (Luopan §3)
	switchDrill     = "switch-drill"      // per packet, DRILL(d, m)
	switchDrillAll  = "switch-drill-all"  // likewise, as if all paths were symmetric
	switchDrillFlow = "switch-drill-flow" // per flow, DRILL(d, m) (DRILL §4)
	switchConga     = "switch-conga"      // per flowlet, the leaf's tables
	switchLetFlow   = "switch-letflow"    // per flowlet, at random: CONGA without feedback
)

// SwitchNames lists the models of switches.
func SwitchNames() []string {
	return []string{switchECMP, switchWCMP, switchRB, switchRR, switchLocal, switchLuopan, switchDrill, switchDrillAll, switchDrillFlow, switchConga, switchLetFlow}
}

// SwitchConfig configures all switches of a simulation.
type SwitchConfig struct {
	Topology *topology.Topology // what switches know; all of its links have rates
	Name     string             // one of SwitchNames
	Seed     uint64
	// DRILL(d, m) and the number of engines of a switch (DRILL §3.2); 0: 2, 1, 1. The
	// engines of switch-rr also choose independently. Samples are switch-luopan's, too.
	Samples, Memory, Engines int
	// Blind is for how long DRILL's engines do not see one another's packets; 0: for as long
	// as the port takes to send each.
	Blind         time.Duration
	FlowcellBytes int           // of switch-local and switch-luopan, as of policy.Options; 0: 64 KB
	Expiry        time.Duration // of switch-luopan: how long a round is good for; 0: 40 µs (Luopan §4.3)
	SampleAge     time.Duration // of switch-luopan: how old a round is when it comes into use; 0: it takes no time
	FlowletGap    time.Duration // of switch-conga and switch-letflow; 0: 500 µs
	Tau           time.Duration // of switch-conga; 0: 160 µs
	// Parallel is how many consecutive spines of a leaf-spine are one switch; 0: one. DRILL and
	// switch-luopan know no parallel links.
	Parallel int
}

// Bounds of a SwitchConfig.
const (
	maxSamples = 32
	maxMemory  = 32
	maxEngines = 256
	// MaxParallel bounds how often weights list a port.
	MaxParallel = 8
)

func (c SwitchConfig) withDefaults() (SwitchConfig, error) {
	c.Samples = cmp.Or(c.Samples, 2)
	c.Memory = cmp.Or(c.Memory, 1)
	c.Engines = cmp.Or(c.Engines, 1)
	c.FlowcellBytes = cmp.Or(c.FlowcellBytes, flowcell.FlowcellBytes)
	c.FlowletGap = cmp.Or(c.FlowletGap, flowcell.FlowletGap)
	c.Tau = cmp.Or(c.Tau, defaultTau)
	c.Expiry = cmp.Or(c.Expiry, 40*time.Microsecond)
	switch {
	case c.Topology == nil:
		return c, fmt.Errorf("spray: Topology is missing")
	case !slices.Contains(SwitchNames(), c.Name):
		return c, fmt.Errorf("spray: Name is %q, must be one of %s", c.Name, strings.Join(SwitchNames(), ", "))
	case c.Samples < 1 || c.Samples > maxSamples:
		return c, fmt.Errorf("spray: Samples is %d, must be from 1 to %d, or 0 for 2", c.Samples, maxSamples)
	case c.Memory < 1 || c.Memory > maxMemory:
		return c, fmt.Errorf("spray: Memory is %d, must be from 1 to %d, or 0 for 1", c.Memory, maxMemory)
	case c.Engines < 1 || c.Engines > maxEngines:
		return c, fmt.Errorf("spray: Engines is %d, must be from 1 to %d, or 0 for 1", c.Engines, maxEngines)
	case c.Blind < 0:
		return c, fmt.Errorf("spray: Blind is %v, must be at least 1ns, or 0 for the time of each packet", c.Blind)
	case c.FlowcellBytes < policy.MinFlowcellBytes || c.FlowcellBytes > policy.MaxFlowcellBytes:
		return c, fmt.Errorf("spray: FlowcellBytes is %d, must be from %d to %d, or 0 for 64 KB", c.FlowcellBytes, policy.MinFlowcellBytes, policy.MaxFlowcellBytes)
	case c.FlowletGap < time.Microsecond:
		return c, fmt.Errorf("spray: FlowletGap is %v, must be at least 1µs, or 0 for 500µs", c.FlowletGap)
	case c.Parallel < 0 || c.Parallel > MaxParallel:
		return c, fmt.Errorf("spray: Parallel is %d, must be from 1 to %d, or 0 for 1", c.Parallel, MaxParallel)
	case c.Parallel > 1 && slices.Contains([]string{switchLuopan, switchDrill, switchDrillAll, switchDrillFlow}, c.Name):
		return c, fmt.Errorf("spray: Parallel is %d, which %s does not know; leave it out", c.Parallel, c.Name)
	case c.Expiry < time.Microsecond:
		return c, fmt.Errorf("spray: Expiry is %v, must be at least 1µs, or 0 for 40µs", c.Expiry)
	case c.SampleAge < 0 || c.SampleAge > time.Second:
		return c, fmt.Errorf("spray: SampleAge is %v, must be from 0 for samples that take no time to 1s", c.SampleAge)
	case c.Tau < time.Microsecond:
		return c, fmt.Errorf("spray: Tau is %v, must be at least 1µs, or 0 for 160µs", c.Tau)
	}
	return c, nil
}

// unit is what a model chooses a path for.
func (c *SwitchConfig) unit() flowcell.Unit {
	switch c.Name {
	case switchECMP, switchWCMP, switchDrillFlow:
		return flowcell.Unit{Kind: flowcell.UnitFlow}
	case switchLocal, switchLuopan:
		return flowcell.Unit{Kind: flowcell.UnitFlowcell, Bytes: c.FlowcellBytes}
	case switchConga, switchLetFlow:
		return flowcell.Unit{Kind: flowcell.UnitFlowlet, Gap: c.FlowletGap}
	}
	return flowcell.Unit{Kind: flowcell.UnitPacket}
}

// NewSwitch returns idle switches that see queues. An error names the field that is
// wrong.
func NewSwitch(c SwitchConfig, queues Queues) (Switch, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	o := oblivious{nextHops: newNextHops(c.Topology, c.Name), name: c.Name, unit: c.unit(), seed: c.Seed, rng: rand.NewPCG(c.Seed, 0x737769746368), engines: newEngines(c.Topology, c.Engines)}
	o.parallel = max(c.Parallel, 1)
	l := loads{queues: queues, perByte: perByte(c.Topology)}
	switch c.Name {
	case switchLocal:
		return &localSampling{oblivious: o, loads: l, cells: newCellTables(&o.shape, c.FlowcellBytes)}, nil
	case switchLuopan:
		return newTimeless(c, o, queues), nil
	case switchDrill, switchDrillAll:
		return newDrill(c, o, l), nil
	case switchDrillFlow:
		return &drillFlow{drill: newDrill(c, o, l), flows: newFlowTables(&o.shape)}, nil
	case switchConga, switchLetFlow:
		return newLeaves(c, o)
	case switchRR:
		o.turn = make([]uint32, o.shape.switches()*c.Engines)
		for i := range o.turn { // not in step
			o.turn[i] = uint32(o.rng.Uint64())
		}
	}
	return &o, nil
}
