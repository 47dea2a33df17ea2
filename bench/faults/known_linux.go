package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// maxKnown bounds what the doctor may find at a node, or in the fabric, while nothing is wrong.
const maxKnown = 200

// learn takes note of what the doctor finds in this lab while nothing is wrong, at the nodes
// that are asked, and in the fabric if a fault asks for that. It tells each.
func (b *Bed) learn(ctx context.Context, list []Fault) error {
	if !b.hasDoctor() {
		return nil
	}
	nodes := asked(list)
	errs, known := make([]error, len(nodes)), make([][]string, len(nodes))
	var all sync.WaitGroup
	for i, node := range nodes {
		all.Go(func() { known[i], errs[i] = b.learnFrom(ctx, Doctor, node) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, node := range nodes {
		b.leaveOut(node, known[i])
	}
	if slices.ContainsFunc(list, func(f Fault) bool { return f.Fabric }) {
		known, err := b.learnFrom(ctx, Fabric, Observer)
		if err != nil {
			return err
		}
		b.leaveOut(string(Fabric), known)
	}
	return nil
}

// leaveOut has the doctor's findings at a node, or in the fabric, not count.
func (b *Bed) leaveOut(at string, known []string) {
	b.known[at] = known
	for _, what := range known {
		b.note("not counted, as the doctor finds it at %s while nothing is broken: %s", at, what)
	}
}

// asked lists the nodes where the tools are asked.
func asked(list []Fault) (nodes []string) {
	for _, f := range list {
		if at := f.node(); !slices.Contains(nodes, at) {
			nodes = append(nodes, at)
		}
	}
	return nodes
}

// learnFrom asks twice, and learns what both answers have: what comes and goes, as a queue that
// was full, counts.
func (b *Bed) learnFrom(ctx context.Context, t Tool, node string) (known []string, err error) {
	var answers [2][]finding
	for i := range answers {
		text, failed, err := b.output(ctx, t, node)
		if err != nil {
			return nil, err
		}
		if answers[i], err = wrong(text); err != nil {
			return nil, fmt.Errorf("%w (%v)", err, failed)
		}
	}
	known = inBoth(answers[0], answers[1])
	if n := len(known); n > maxKnown {
		return nil, fmt.Errorf("weft %s at %s finds %d things wrong while nothing is broken, such as: %s", t, node, n, known[0])
	}
	return known, nil
}

// inBoth is what two answers have in common.
func inBoth(a, b []finding) (all []string) {
	for _, f := range a {
		what := f.what()
		if slices.ContainsFunc(b, func(o finding) bool { return o.what() == what }) && !slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	return all
}

// knownTo is what is not counted of the doctor's answers about a fault.
func (b *Bed) knownTo(f Fault, node string) []string {
	all := slices.Clone(b.known[node])
	if f.Fabric {
		all = append(all, b.known[string(Fabric)]...)
	}
	return all
}

// note tells whoever runs the Bed something.
func (b *Bed) note(format string, args ...any) {
	if b.options.Notes != nil {
		fmt.Fprintf(b.options.Notes, format+"\n", args...)
	}
}
