package faults

import (
	"context"
	"fmt"
	"slices"
)

// maxKnown bounds what the doctor may find at a node, or in the fabric, while nothing is wrong.
const maxKnown = 200

// learn takes note of what the doctor finds in this lab while nothing is wrong, at the nodes
// that are asked, and in the fabric if a fault asks for that. It tells each.
func (b *Bed) learn(ctx context.Context, list []Fault) error {
	if !b.hasDoctor() {
		return nil
	}
	for _, node := range asked(list) {
		if err := b.learnFrom(ctx, Doctor, node); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(list, func(f Fault) bool { return f.Fabric }) {
		return b.learnFrom(ctx, Fabric, Observer)
	}
	return nil
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
func (b *Bed) learnFrom(ctx context.Context, t Tool, node string) error {
	at := t.knownAt(node)
	var answers [2][]finding
	for i := range answers {
		text, failed, err := b.output(ctx, t, node)
		if err != nil {
			return err
		}
		if answers[i], err = wrong(text); err != nil {
			return fmt.Errorf("%w (%v)", err, failed)
		}
	}
	b.known[at] = inBoth(answers[0], answers[1])
	if n := len(b.known[at]); n > maxKnown {
		return fmt.Errorf("the doctor at %s finds %d things wrong while nothing is broken, such as: %s", at, n, b.known[at][0])
	}
	for _, what := range b.known[at] {
		b.note("not counted, as the doctor finds it at %s while nothing is broken: %s", at, what)
	}
	return nil
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
