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
	for _, node := range append([]string{Observer}, real...) {
		if err := b.learnFrom(ctx, Doctor, node); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(list, func(f Fault) bool { return f.Fabric }) {
		return b.learnFrom(ctx, Fabric, Observer)
	}
	return nil
}

// learnFrom asks until a tool finds nothing that is not known.
func (b *Bed) learnFrom(ctx context.Context, t Tool, node string) error {
	at := t.knownAt(node)
	for {
		text, failed, err := b.output(ctx, t, node)
		if err != nil {
			return err
		}
		found, err := wrong(text)
		if err != nil {
			return fmt.Errorf("%w (%v)", err, failed)
		}
		more := unknown(b.known[at], found)
		if len(more) == 0 {
			return nil
		}
		b.known[at] = append(b.known[at], more...)
		if len(b.known[at]) > maxKnown {
			return fmt.Errorf("the doctor at %s finds ever more: %s", at, more[0])
		}
		for _, what := range more {
			b.note("not counted, as the doctor finds it at %s while nothing is broken: %s", at, what)
		}
	}
}

// unknown is what was found and is not known.
func unknown(known []string, found []finding) (more []string) {
	for _, f := range found {
		if what := f.what(); !slices.Contains(known, what) && !slices.Contains(more, what) {
			more = append(more, what)
		}
	}
	return more
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
