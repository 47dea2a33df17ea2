package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

const (
	every = time.Second // how often the tools are asked
	// askTime bounds one question.
	askTime = 8 * time.Second
	// fabricTime bounds one question about all nodes.
	fabricTime = time.Minute
	// soon is how long the daemon is waited for after a fault is mended, until it is started
	// anew: what it has found stays out of use for a while.
	soon = 3 * time.Second
	// healing is how long it may take until all is well then.
	healing = 90 * time.Second
)

// ask asks a tool at a node.
func (b *Bed) ask(ctx context.Context, t Tool, node string) (Said, error) {
	text, failed, err := b.output(ctx, t, node)
	if err != nil {
		return Said{}, err
	}
	return t.said(text, failed, b.known[t.knownAt(node)])
}

// knownAt is the key of Bed.known of what a tool finds at a node.
func (t Tool) knownAt(node string) string {
	if t == Fabric {
		return string(Fabric)
	}
	return node
}

// output is what a tool prints at a node, and why it has ended with an error, if it has.
func (b *Bed) output(ctx context.Context, t Tool, node string) (text string, failed, err error) {
	limit := askTime
	if t == Fabric {
		limit = fabricTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := strings.Fields(string(t))
	switch t {
	case Doctor:
		args = append(args, "--json", "--config", b.configFile(node))
	case Fabric:
		args = append(args, "--json", "--name", b.options.Lab)
	}
	var out, failure bytes.Buffer
	c := b.weft(ctx, args...)
	c.Stdout, c.Stderr = &out, &failure
	if err := b.do(node, c.Start); err != nil {
		return "", nil, err
	}
	failed = c.Wait()
	if exit := new(exec.ExitError); failed != nil && !errors.As(failed, &exit) {
		return "", nil, fmt.Errorf("weft %s at %s: %w", strings.Join(args, " "), node, failed)
	}
	text = out.String()
	if strings.TrimSpace(text) == "" {
		text = failure.String()
	}
	if failed != nil && ctx.Err() != nil {
		text = "no answer"
	}
	return text, failed, nil
}

// tools are those that this weft has.
func (b *Bed) tools() (list []Tool) {
	for _, t := range Tools() {
		if t == Doctor && !b.hasDoctor() {
			continue
		}
		list = append(list, t)
	}
	return list
}

func (b *Bed) hasDoctor() bool {
	return b.weft(context.Background(), "doctor", "--help").Run() == nil
}

// Run tries the faults one by one. It tells each result at once.
func (b *Bed) Run(ctx context.Context, list []Fault, tell func(Result)) error {
	if err := b.learn(ctx, list); err != nil {
		return err
	}
	for i, f := range list {
		r, err := b.try(ctx, f)
		if err != nil {
			r.Error = err.Error()
		}
		tell(r)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if i == len(list)-1 {
			break // nobody asks any more
		}
		if err := b.recover(ctx, f); err != nil {
			return fmt.Errorf("after %s: %w", f.Name, err)
		}
	}
	return nil
}

// try breaks something, asks, and mends it.
func (b *Bed) try(ctx context.Context, f Fault) (r Result, err error) {
	r = Result{Fault: f.Name, What: f.What, Cause: f.Cause.String(), At: f.At}
	node := f.node()
	r.Known = b.knownTo(f, node)
	if f.Start {
		if err := b.stop(node); err != nil {
			return r, err
		}
	}
	heal := func() error { return nil }
	if f.Inject != nil {
		mend, err := f.Inject(b)
		if mend != nil {
			heal = mend
		}
		if err != nil {
			return r, errors.Join(err, heal())
		}
	}
	defer func() { err = errors.Join(err, heal()) }()
	if f.Start {
		if err := b.startHost(node, f.Config); err != nil {
			return r, err
		}
	}
	began := time.Now()
	for next := began.Add(every); ; next = next.Add(every) {
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-time.After(time.Until(next)):
		}
		done, err := b.askAll(ctx, f, node, began, &r)
		if err != nil || done {
			return r, err
		}
		if time.Since(began) >= b.options.Within {
			return r, b.askFabric(ctx, f, began, &r)
		}
	}
}

// askFabric asks weft doctor --fabric, where an operator would, as nothing else has told.
func (b *Bed) askFabric(ctx context.Context, f Fault, began time.Time, r *Result) error {
	if !f.Fabric || !b.hasDoctor() {
		return nil
	}
	s, err := b.ask(ctx, Fabric, Observer)
	if err != nil {
		return err
	}
	if f.Named(s) {
		r.Told, r.Seconds, r.Said = Fabric, time.Since(began).Seconds(), s.First
	} else {
		r.Others[Fabric] = s.First
	}
	return nil
}

// askAll asks each tool once, and reports whether one has named the cause.
func (b *Bed) askAll(ctx context.Context, f Fault, node string, began time.Time, r *Result) (done bool, err error) {
	others := map[Tool]string{}
	for _, t := range b.tools() {
		s, err := b.ask(ctx, t, node)
		if err != nil {
			return false, err
		}
		named := f.Named(s)
		if at := time.Since(began); named && !done && at <= b.options.Within+every {
			r.Told, r.Seconds, r.Said, done = t, at.Seconds(), s.First, true
			continue
		}
		if others[t] = s.First; s.Alarm && !named && !done {
			r.before(string(t) + ": " + s.First)
		}
	}
	r.Others = others
	return done, nil
}

// before notes what was said first and was not the cause.
func (r *Result) before(said string) {
	for _, b := range r.Before {
		if b == said {
			return
		}
	}
	r.Before = append(r.Before, said)
}

// recover waits until all is well again after a fault.
func (b *Bed) recover(ctx context.Context, f Fault) error {
	fresh := f.Start
	if p := b.daemons[Observer]; !fresh && p != nil {
		select {
		case <-p.ended:
			fresh = true
		default:
		}
	}
	if fresh || b.awaitHealthy(ctx, Observer, soon) != nil {
		if err := errors.Join(b.stop(Observer), b.startHost(Observer, "")); err != nil {
			return err
		}
	}
	if err := b.awaitHealthy(ctx, Observer, healing); err != nil {
		return err
	}
	s, err := b.ask(ctx, Status, Observer)
	if err != nil || s.First == "" {
		return err
	}
	// A note of what was mended must not be there at the next fault.
	if err := errors.Join(b.stop(Observer), b.startHost(Observer, "")); err != nil {
		return err
	}
	return b.awaitHealthy(ctx, Observer, healing)
}

// awaitHealthy waits until neither status nor blame says that anything is wrong, twice in a
// row.
func (b *Bed) awaitHealthy(ctx context.Context, node string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for well := 0; ; {
		said := ""
		for _, t := range []Tool{Status, Blame} {
			s, err := b.ask(ctx, t, node)
			if err != nil {
				return err
			}
			if s.Alarm && said == "" {
				said = s.First
			}
		}
		if well++; said != "" {
			well = 0
		}
		if well == 2 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not well within %v: %s; its log ends with\n%s", node, limit, said, b.log(node))
		case <-time.After(every / 2):
		}
	}
}

// Healthy has traffic without a fault, and notes all that the tools say. It tells each alarm
// at once.
func (b *Bed) Healthy(ctx context.Context, d time.Duration) (h Health, err error) {
	h.Alarms = []Alarm{}
	tools := b.tools()
	began, before := time.Now(), b.traffic.arrived.Load()
	for next := began; time.Since(began) < d; next = next.Add(every) {
		select {
		case <-ctx.Done():
			return h, ctx.Err()
		case <-time.After(time.Until(next)):
		}
		for _, t := range tools {
			s, err := b.ask(ctx, t, Observer)
			if err != nil {
				return h, err
			}
			if h.Asked++; s.Alarm {
				h.Alarms = append(h.Alarms, Alarm{t, time.Since(began).Seconds(), s.First})
				b.note("after %.0f s: %s: %s", time.Since(began).Seconds(), t, s.First)
			}
		}
	}
	h.Seconds = time.Since(began).Seconds()
	h.Mbit = float64(b.traffic.arrived.Load()-before) * 8 / h.Seconds / 1e6
	return h, nil
}
