// Package policy is a table: a policy is a unit (when to choose a path again) times a
// rule (which path). A new scheme is a new row.
//
// # Why a table
//
// Everything that depends on policies derives from the table: weft demo, weft paths, the
// kernel's programs, labels. So a new scheme is one row. A Rule is an order over the live
// paths, made once for each set of paths and shared by all pairs with that set, and a
// position in it. Policies of packets and of whole flows keep no state for each flow.
//
// The policies in the last rows also know of congestion. They follow their Rule while
// they know nothing, in a tunnel, and for acknowledgements.
//
// Groups (DRILL's symmetric components) are off by default. A flow that keeps to one
// component is not slowed by the others, but it cannot use them either.
package policy

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"weft/drb"
	"weft/flowcell"
	"weft/reps"
)

// Policy is one row.
type Policy struct {
	Name string
	Unit flowcell.Unit
	// Rule says which path a unit takes. A policy that is aware of congestion
	// follows it while it knows nothing.
	Rule   drb.Rule
	Aware  Awareness
	Source string // where it comes from
	// Groups says that the packets of a flow keep to one group of symmetric
	// paths. See Options.
	Groups bool
	// Adapts says that At fits the unit to the links. Before the first At it is that of links
	// whose rate is not known.
	Adapts bool

	most    int      // bytes of a flowcell that At gives
	heeding *heeding // what makes the selectors of a policy that is Heeding; else nil
}

// Awareness is what a policy knows besides which paths are live.
type Awareness uint8

// The kinds.
const (
	Oblivious  Awareness = iota // nothing
	Sampled                     // congestion of some paths, which probes measure (Luopan §3)
	Informed                    // congestion of all paths, which receivers report (CONGA §3)
	Backlogged                  // what this host has sent by each path (DRILL §3.2)
	Heeding                     // the fate of the flow's packets; each flow has a Selector
)

// How describes the policy's choice of a path.
func (p Policy) How() string {
	switch p.Aware {
	case Sampled:
		return "least congested sample"
	case Informed:
		return "least congested path"
	case Backlogged:
		return "least own backlog"
	case Heeding:
		return p.heeding.how
	}
	return p.Rule.String()
}

// The units of the table, each with its default measure.
var (
	packet  = flowcell.Unit{Kind: flowcell.UnitPacket}
	flow    = flowcell.Unit{Kind: flowcell.UnitFlow}
	cell64  = flowcell.Unit{Kind: flowcell.UnitFlowcell, Bytes: flowcell.FlowcellBytes}
	flowlet = flowcell.Unit{Kind: flowcell.UnitFlowlet, Gap: flowcell.FlowletGap}
)

func row(name string, unit flowcell.Unit, rule drb.Rule, source string) Policy {
	return Policy{Name: name, Unit: unit, Rule: rule, Source: source}
}

// PerFlow spreads traffic that must not be reordered: one path for each flow,
// whatever the policy of other traffic.
var PerFlow = row("ecmp", flow, drb.Hash, "baseline")

var table = []Policy{
	PerFlow,
	row("rb", packet, drb.Random, "DRB §3.1.2"),
	row("rrb", packet, drb.RoundRobin, "DRB §3.1.2"),
	row("drb", packet, drb.DigitReversal, "DRB §3.1.2"),
	row("presto", cell64, drb.RoundRobin, "Luopan §2.1"),
	row("flowcell-drb", cell64, drb.DigitReversal, "ours"),
	row(Default, cell64, drb.DigitReversal, "ours").adapts(),
	row("letflow", flowlet, drb.Random, "Luopan §6"),
	row("rand", cell64, drb.Random, "Luopan §4.1"),
	row("luopan", cell64, drb.Random, "Luopan §3").aware(Sampled),
	row("conga", flowlet, drb.Random, "CONGA §3").aware(Informed),
	row("local", cell64, drb.Random, "Luopan §4.1").aware(Backlogged),
	row("drill", packet, drb.Random, "DRILL §3.2").aware(Backlogged),
	row("reps", packet, drb.Random, "REPS §3").Heeds("paths of acknowledged packets", newReps),
}

func newReps(seed uint64) Selector { return reps.New(seed) }

func (p Policy) aware(a Awareness) Policy {
	p.Aware = a
	return p
}

func (p Policy) adapts() Policy {
	p.Adapts, p.most = true, p.Unit.Bytes
	return p
}

// Default is the policy where none is named. Its unit fits the links: see At.
const Default = "auto"

// At returns the policy for paths whose slowest link has a rate in bit/s, 0 if that is not
// known. A policy that Adapts gets the unit of flowcell.UnitAt, with flowcells no larger than
// Options.FlowcellBytes. Others are what they are.
func (p Policy) At(rate float64) Policy {
	if !p.Adapts {
		return p
	}
	p.Unit = flowcell.UnitAt(rate)
	p.Unit.Bytes = min(p.Unit.Bytes, p.most)
	return p
}

// Rate returns the rate for At, in bit/s: of a fabric whose slowest link is known to have
// so many Mbit/s, or the one that the options give if that is 0.
func (o Options) Rate(slowest float64) float64 { return cmp.Or(slowest*1e6, o.LinkRateBits) }

// Options adjust a policy. One set of them serves the whole table: an option that
// does not concern a row's unit has no effect on it.
type Options struct {
	// FlowcellBytes is the most TCP payload that a flowcell holds, in bytes, from
	// MinFlowcellBytes to MaxFlowcellBytes; 0 means 65,536 (Presto). Smaller flowcells
	// spread more evenly, but more of them arrive out of order. Under auto it is the most
	// that At gives them.
	FlowcellBytes int
	// FlowletGap is the pause that a flow must exceed for its next packet to
	// begin a flowlet, from MinFlowletGap to MaxFlowletGap; 0 means 500 µs
	// (CONGA §3.6). A gap longer than the paths' difference in delay keeps
	// packets in order.
	FlowletGap time.Duration
	// Samples is how many paths to a destination are probed at a time by a policy
	// that samples, from 1 to MaxSamples; 0 means 2 (Luopan §4.3).
	Samples int
	// Expiry is how long a sample is used, from MinExpiry to MaxExpiry; 0 means that it
	// follows the measured round trip (Luopan §5).
	Expiry time.Duration
	// SamplesOnly has a policy that samples go by the paper's rule (Luopan §3.2): flowcells
	// follow the least congested sample alone, what was sent since does not count, and
	// without a sample they take random paths.
	SamplesOnly bool
	// LinkRateBits is the rate of the links between switches in bit/s, from
	// MinLinkRateBits to MaxLinkRateBits; 0 means 10e9, and for auto that nobody knows.
	// auto and policies that go by what they have sent need it. It counts only where the
	// topology gives no rate.
	LinkRateBits float64
	// Tau is the time over which conga averages a link's rate (CONGA §3.2), from MinTau to
	// MaxTau; 0 means 160 µs.
	Tau time.Duration
	// Groups keeps each flow within one symmetric group of paths, chosen by weight (DRILL
	// §3.4.2). Where links are down or rates differ, all packets of a flow then meet
	// equal queues, and a crowded path does not slow the others down. The price is that a
	// flow uses fewer paths. Groups has no effect on policies that keep a flow to one
	// path.
	Groups bool
}

// Bounds of Options.
const (
	// The 1,024 numbers of flowcells must not wrap within the packets in flight:
	// flowcells of 1 KB allow for 512 KB, those of 64 KB for 32 MB.
	MinFlowcellBytes = 1 << 10
	// A flowcell holds no more than 63 segments, whatever its size.
	MaxFlowcellBytes = 1 << 20

	MinFlowletGap = time.Microsecond
	MaxFlowletGap = 10 * time.Second

	// More than 9 samples gain nothing (Luopan §4.3).
	MaxSamples = 36
	MinExpiry  = 10 * time.Microsecond
	MaxExpiry  = 10 * time.Second

	// The bounds are those of a topology file.
	MinLinkRateBits = 1e3
	MaxLinkRateBits = 1e13

	MinTau = time.Microsecond
	MaxTau = 10 * time.Second
)

// Validate checks all options, also those that a policy does not use.
func (o Options) Validate() error {
	if n := o.FlowcellBytes; n != 0 && (n < MinFlowcellBytes || n > MaxFlowcellBytes) {
		return fmt.Errorf("FlowcellBytes is %d, must be from %d to %d, or 0 for %d",
			n, MinFlowcellBytes, MaxFlowcellBytes, flowcell.FlowcellBytes)
	}
	if g := o.FlowletGap; g != 0 && (g < MinFlowletGap || g > MaxFlowletGap) {
		return fmt.Errorf("FlowletGap is %v, must be from %v to %v, or 0 for %v",
			g, MinFlowletGap, MaxFlowletGap, flowcell.FlowletGap)
	}
	if n := o.Samples; n < 0 || n > MaxSamples {
		return fmt.Errorf("Samples is %d, must be from 1 to %d, or 0 for 2", n, MaxSamples)
	}
	if e := o.Expiry; e != 0 && (e < MinExpiry || e > MaxExpiry) {
		return fmt.Errorf("Expiry is %v, must be from %v to %v, or 0 to follow the round trip", e, MinExpiry, MaxExpiry)
	}
	if r := o.LinkRateBits; r != 0 && !(r >= MinLinkRateBits && r <= MaxLinkRateBits) { // NaN, too
		return fmt.Errorf("LinkRateBits is %v, must be a rate in bit/s from %v to %v, or 0 for 10e9",
			r, float64(MinLinkRateBits), float64(MaxLinkRateBits))
	}
	if t := o.Tau; t != 0 && (t < MinTau || t > MaxTau) {
		return fmt.Errorf("Tau is %v, must be from %v to %v, or 0 for 160µs", t, MinTau, MaxTau)
	}
	return nil
}

// New returns the named policy with these options. An error names the known policies, or
// the wrong option.
func New(name string, o Options) (Policy, error) {
	if err := o.Validate(); err != nil {
		return Policy{}, fmt.Errorf("policy options: %w", err)
	}
	for _, p := range table {
		if p.Name == name {
			p.adjust(o)
			return p, nil
		}
	}
	return Policy{}, fmt.Errorf("policy %q: unknown; known: %s", name, strings.Join(Names(), ", "))
}

func (p *Policy) adjust(o Options) {
	switch {
	case p.Adapts && o.FlowcellBytes != 0:
		p.most = o.FlowcellBytes
		*p = p.At(0)
	case p.Unit.Kind == flowcell.UnitFlowcell && o.FlowcellBytes != 0:
		p.Unit.Bytes = o.FlowcellBytes
	case p.Unit.Kind == flowcell.UnitFlowlet && o.FlowletGap != 0:
		p.Unit.Gap = o.FlowletGap
	}
	p.Groups = o.Groups && p.Sprays()
}

// Names lists the policies in the order of the table.
func Names() []string {
	names := make([]string, len(table))
	for i, p := range table {
		names[i] = p.Name
	}
	return names
}

// Sprays reports whether packets of one flow may take different paths, so that
// the receiver must put them back in order.
func (p Policy) Sprays() bool { return p.Unit.Kind != flowcell.UnitFlow }
