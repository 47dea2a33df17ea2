package simfile

import (
	"fmt"
	"slices"
	"strings"

	"weft/bench/sim/workload"
	"weft/internal/config"
)

func (f *File) checkMatrix(string) error {
	t, fabric := &f.Traffic, f.plan.fabric
	key := "traffic." + t.Matrix
	switch t.Matrix {
	case "":
		return f.wrong("traffic.matrix", "missing; write one of %s", strings.Join(matrices, ", "))
	case stride:
		if t.Stride < 1 || t.Stride%fabric.hosts() == 0 {
			return f.wrong(key, "%d; write 1 or more, and no multiple of the %d hosts", t.Stride, fabric.hosts())
		}
	case staggered, otherPods:
		if fabric.graph != nil {
			return f.wrong("traffic.matrix", "%s goes by pods, which a graph has not; write %s", t.Matrix, otherRacks)
		}
		for _, p := range []struct {
			key   string
			value float64
		}{{"traffic.rack", t.Rack}, {"traffic.pod", t.Pod}} {
			if !(p.value >= 0 && p.value <= 1) {
				return f.wrong(p.key, "%g; write a probability, from 0 to 1", p.value)
			}
		}
		if t.Rack+t.Pod > 1 {
			return f.wrong("traffic.pod", "%g and rack %g are more than 1 together; lower one", t.Pod, t.Rack)
		}
	case incast:
		if n := fabric.hosts(); t.Servers < 1 || t.Servers >= n {
			return f.wrong("traffic.servers", "%d; write from 1 to %d: all hosts but the client", t.Servers, n-1)
		}
		if t.Sizes.Fixed > 0 && f.plan.sizes.Mean() < float64(t.Servers) {
			return f.wrong("traffic.sizes", "jobs of %g bytes; write a byte for each of the %d servers at least", f.plan.sizes.Mean(), t.Servers)
		}
		if t.Arrivals == together && (t.Jobs < 1 || t.Jobs > fabric.hosts()) {
			return f.wrong("traffic.jobs", "%d; write from 1 to %d, a client each", t.Jobs, fabric.hosts())
		}
	case list:
		if len(t.List) == 0 {
			return f.wrong("traffic.list", "missing; write flows such as - {at: 0s, from: h0.0.2, to: h0.1.2, bytes: 100000}")
		}
	}
	if !slices.Contains(matrices, t.Matrix) {
		return f.wrong("traffic.matrix", "%q is unknown; %s", t.Matrix, config.DidYouMean(t.Matrix, matrices))
	}
	return nil
}

func (f *File) checkArrivals(string) error {
	t := &f.Traffic
	switch {
	case t.Matrix == list && t.Arrivals != "":
		return f.wrong("traffic.arrivals", "flows of matrix list have times of their own; remove it")
	case t.Matrix == list:
		return nil
	case t.Arrivals != poisson && t.Arrivals != together:
		return f.wrong("traffic.arrivals", "%q; write %s, with loads, or %s", t.Arrivals, poisson, together)
	case t.Arrivals == poisson && len(t.Loads) == 0:
		return f.wrong("traffic.loads", "missing; write parts of what hosts can send out of their racks, such as [0.3, 0.6]")
	case t.Rounds < 1 || t.Rounds > maxFlows:
		return f.wrong("traffic.rounds", "%d; write 1 or more", t.Rounds)
	case t.AtOnce < 1 || t.AtOnce > maxFlows:
		return f.wrong("traffic.at_once", "%d; write 1 or more", t.AtOnce)
	}
	for i, load := range t.Loads {
		key := fmt.Sprintf("traffic.loads[%d]", i)
		if !(load > 0 && load <= 1) {
			return f.wrong(key, "%g; write a number above 0, at most 1", load)
		}
		if slices.Index(t.Loads, load) < i {
			return f.wrong(key, "%g is given twice; remove one", load)
		}
	}
	return nil
}

// checkUnused finds keys that would have no effect.
func (f *File) checkUnused(string) error {
	t, std := &f.Traffic, defaults().Traffic
	for _, k := range []struct {
		key  string
		set  bool
		when string
		is   bool
	}{
		{"stride", t.Stride != 0, "matrix " + stride, t.Matrix == stride},
		{"rack", t.Rack != 0, "matrix " + staggered, t.Matrix == staggered},
		{"pod", t.Pod != 0, "matrix " + staggered, t.Matrix == staggered},
		{"servers", t.Servers != 0, "matrix " + incast, t.Matrix == incast},
		{"jobs", t.Jobs != std.Jobs, "matrix incast with arrivals together", t.Matrix == incast && t.Arrivals == together},
		{"loads", len(t.Loads) > 0, "arrivals " + poisson, t.Arrivals == poisson},
		{"rounds", t.Rounds != std.Rounds, "arrivals together, and neither incast nor all-to-all", t.Arrivals == together && t.Matrix != incast && t.Matrix != allToAll},
		{"at_once", t.AtOnce != std.AtOnce, "arrivals together, and not incast", t.Arrivals == together && t.Matrix != incast},
		{"spread", t.Spread != 0, "arrivals together, and not incast", t.Arrivals == together && t.Matrix != incast},
		{"list", len(t.List) > 0, "matrix " + list, t.Matrix == list},
	} {
		if k.set && !k.is {
			return f.wrong("traffic."+k.key, "has no effect here, it is for %s; remove it", k.when)
		}
	}
	return nil
}

func (f *File) readList(string) error {
	fabric := f.plan.fabric
	for i, l := range f.Traffic.List {
		key := fmt.Sprintf("traffic.list[%d].", i)
		w := workload.Flow{Start: l.At, Bytes: int64(l.Bytes), Job: uint32(i)}
		var err error
		if w.Src, err = fabric.host(l.From); err != nil {
			return f.wrong(key+"from", "%w", err)
		}
		if w.Dst, err = fabric.host(l.To); err != nil {
			return f.wrong(key+"to", "%w", err)
		}
		switch {
		case w.Src == w.Dst:
			return f.wrong(key+"to", "%s is the sender; write another host", l.To)
		case l.Bytes < 1 || l.Bytes > maxFlow:
			return f.wrong(key+"bytes", "%d; write from 1 to %d", l.Bytes, int64(maxFlow))
		case l.At < 0 || l.At > f.Duration:
			return f.wrong(key+"at", "%v; write from 0s to duration, %v", l.At, f.Duration)
		}
		f.plan.list = append(f.plan.list, w)
	}
	slices.SortStableFunc(f.plan.list, func(a, b workload.Flow) int { return int(a.Start - b.Start) })
	f.plan.traffic = f.Traffic
	return nil
}

// checkAmount also makes the first flows, which finds what the fabric is too small for.
func (f *File) checkAmount(string) error {
	loads := f.loads()
	if n := len(f.Policies) * len(loads) * f.Seeds; n > maxRuns {
		return f.wrong("seeds", "%d make %d runs; write fewer, %d runs are the most", f.Seeds, n, maxRuns)
	}
	all := 0.0
	key, fix := "traffic", "shorten duration, or raise sizes"
	for _, load := range loads {
		n := f.plan.expected(load)
		if n > maxFlows/2 {
			return f.wrong(key, "about %.0f flows in a run, %d are the most; %s", n, maxFlows/2, fix)
		}
		if n < 1 {
			return f.wrong(key, "load %g makes less than one flow in %v; lengthen duration, or lower sizes", load, f.Duration)
		}
		all += n * float64(len(f.Policies)*f.Seeds)
	}
	if all > maxAllFlows {
		return f.wrong(key, "about %.0f flows in all runs, %d are the most; %s, or take fewer seeds", all, maxAllFlows, fix)
	}
	if _, err := f.plan.source(loads[0], uint64(f.Seed)); err != nil {
		return f.wrong("traffic.matrix", "%s", withoutPackage(err))
	}
	return nil
}

// loads are those of arrivals poisson, and 0 for others.
func (f *File) loads() []float64 {
	if len(f.Traffic.Loads) == 0 {
		return []float64{0}
	}
	return f.Traffic.Loads
}
