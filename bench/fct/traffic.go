package fct

import (
	"fmt"
	"strconv"
	"strings"

	"weft/bench/permutation"
	"weft/bench/sim/workload"
	"weft/topology"
)

// traffic is whom hosts send to, and when.
type traffic struct {
	name string // with the parameters, as weft bench patterns writes them: stride(4)
	kind string
	args []float64
}

// trafficKind is a traffic without its parameters.
type trafficKind struct {
	kind     string
	args     string // in words; "": none
	numArgs  int
	jobBytes int64 // of a job as in the paper, before sizes are scaled; 0: sizes are the workload's
	about    string
}

const (
	random, toOne   = "random", "permutation"
	stride          = "stride"
	staggered       = "staggered"
	shuffle, incast = "shuffle", "incast"
	hdfs            = "hdfs"
)

var trafficKinds = []trafficKind{
	{kind: random, about: "each flow to a random host of another rack (DRILL §4)"},
	{kind: toOne, about: "all of a host's flows to one host as far away as can be, and each host receives from one"},
	{kind: stride, args: "BY", numArgs: 1, about: "host x sends to host x+BY (thesis §4.4.1)"},
	{kind: staggered, args: "RACK,POD", numArgs: 2, about: "each host to one of its rack or pod with these probabilities, else of another pod (thesis §4.4.1)"},
	{kind: shuffle, jobBytes: 500e6, about: "each host to every other, one after the other, in a random order (thesis T4.2); loads do not matter"},
	{kind: incast, args: "N", numArgs: 1, jobBytes: 10e6, about: "a client gets a file of which N servers have a part each, and send at once (CONGA §5.3)"},
	{kind: hdfs, jobBytes: 128e6, about: "a block is written: the first of three replicas stays at the writer, which sends the second, whose host passes it on (CONGA §5.4)"},
}

// TrafficHelp has a line for each traffic.
func TrafficHelp() (lines [][2]string) {
	for _, k := range trafficKinds {
		name := k.kind
		if k.args != "" {
			name += "(" + k.args + ")"
		}
		lines = append(lines, [2]string{name, k.about})
	}
	return lines
}

func trafficNames() string {
	var names []string
	for _, l := range TrafficHelp() {
		names = append(names, l[0])
	}
	return strings.Join(names, ", ")
}

// parseTraffic reads a name such as stride(4).
func parseTraffic(s string) (t traffic, err error) {
	kind, rest, given := strings.Cut(s, "(")
	args, closed := strings.CutSuffix(rest, ")")
	for _, k := range trafficKinds {
		if k.kind != strings.TrimSpace(kind) {
			continue
		}
		if given != (k.numArgs > 0) || given && !closed {
			break
		}
		t = traffic{kind: k.kind, name: k.kind}
		if k.numArgs == 0 {
			return t, nil
		}
		var written []string
		for a := range strings.SplitSeq(args, ",") {
			x, err := strconv.ParseFloat(strings.TrimSpace(a), 64)
			if err != nil || !(x >= 0 && x <= maxFlows) {
				return t, fmt.Errorf("traffic %q: %q is no number from 0 to %d; write %s(%s)", s, a, maxFlows, k.kind, k.args)
			}
			t.args, written = append(t.args, x), append(written, strconv.FormatFloat(x, 'g', -1, 64))
		}
		if len(t.args) != k.numArgs {
			return t, fmt.Errorf("traffic %q: %d parameters; write %s(%s)", s, len(t.args), k.kind, k.args)
		}
		t.name = fmt.Sprintf("%s(%s)", k.kind, strings.Join(written, ", ")) // as papers/thesis writes them
		if whole := t.args[0] == float64(int(t.args[0])); k.numArgs == 1 && !whole {
			return t, fmt.Errorf("traffic %q: %g must be a whole number", s, t.args[0])
		}
		return t, nil
	}
	return t, fmt.Errorf("traffic %q: unknown; known: %s", s, trafficNames())
}

// jobBytes is how large the traffic's jobs are in the paper; 0: it has none.
func (t traffic) jobBytes() int64 {
	for _, k := range trafficKinds {
		if k.kind == t.kind {
			return k.jobBytes
		}
	}
	return 0
}

// destination returns to whom flows go whose times and sizes are the workload's.
func (t traffic) destination(top *topology.Topology, seed uint64) (to workload.Destination, err error) {
	var pairs []topology.NodeID
	switch t.kind {
	case toOne:
		// It goes round for ever where there is one rack.
		if _, err := workload.Uniform(top, workload.OtherRack); err != nil {
			return nil, err
		}
		pairs = permutation.Random(top, seed)
	case stride:
		pairs, err = workload.Stride(top, int(t.args[0]))
	case staggered:
		pairs, err = workload.Staggered(top, t.args[0], t.args[1], false, seed)
	default:
		return workload.Uniform(top, workload.OtherRack)
	}
	if err != nil {
		return nil, err
	}
	return workload.To(pairs), nil
}
