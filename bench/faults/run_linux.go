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
	// soon is how long the daemon is waited for after a fault is mended, until it is started
	// anew: what it has found stays out of use for a while.
	soon = 3 * time.Second
	// healing is how long it may take until all is well then.
	healing = 90 * time.Second
)

// ask asks a tool at a node.
func (b *Bed) ask(ctx context.Context, t Tool, node string) (Said, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	args := []string{string(t)}
	if t == Doctor {
		args = append(args, "--json", "--config", b.configFile(node))
	}
	var out, failure bytes.Buffer
	c := b.weft(ctx, args...)
	c.Stdout, c.Stderr = &out, &failure
	if err := b.do(node, c.Start); err != nil {
		return Said{}, err
	}
	err := c.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return Said{}, fmt.Errorf("weft %s at %s: %w", strings.Join(args, " "), node, err)
	}
	text := out.String()
	if strings.TrimSpace(text) == "" {
		text = failure.String()
	}
	if err != nil && ctx.Err() != nil {
		text = "no answer"
	}
	return t.said(text, err, b.known[node])
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
	for _, node := range append([]string{Observer}, real...) {
		if err := b.learnDoctor(ctx, node); err != nil {
			return err
		}
	}
	for _, f := range list {
		r, err := b.try(ctx, f)
		if err != nil {
			r.Error = err.Error()
		}
		tell(r)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := b.recover(ctx, f); err != nil {
			return fmt.Errorf("after %s: %w", f.Name, err)
		}
	}
	return nil
}

// learnDoctor takes note of what the doctor finds in this lab while nothing is wrong.
func (b *Bed) learnDoctor(ctx context.Context, node string) error {
	if !b.hasDoctor() {
		return nil
	}
	for {
		s, err := b.ask(ctx, Doctor, node)
		if err != nil || s.Check == "" {
			return err
		}
		if len(b.known[node]) > 20 {
			return fmt.Errorf("the doctor at %s finds ever more: %s", node, s.First)
		}
		b.known[node] = append(b.known[node], s.Check)
	}
}

// try breaks something, asks, and mends it.
func (b *Bed) try(ctx context.Context, f Fault) (r Result, err error) {
	r = Result{Fault: f.Name, What: f.What, Cause: f.Cause.String()}
	node := f.Node
	if node == "" {
		node = Observer
	}
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
		if err != nil || done || time.Since(began) >= b.options.Within {
			return r, err
		}
	}
}

// askAll asks each tool once, and reports whether one has named the cause.
func (b *Bed) askAll(ctx context.Context, f Fault, node string, began time.Time, r *Result) (done bool, err error) {
	others := map[Tool]string{}
	for _, t := range b.tools() {
		s, err := b.ask(ctx, t, node)
		if err != nil {
			return false, err
		}
		named := f.Cause.In(s.First)
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
		case <-time.After(every):
		}
	}
}

// Healthy has traffic without a fault, and notes all that the tools say.
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
			}
		}
	}
	h.Seconds = time.Since(began).Seconds()
	h.Mbit = float64(b.traffic.arrived.Load()-before) * 8 / h.Seconds / 1e6
	return h, nil
}
