package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/overview"
)

// statusFlags are those of weft status and weft switch status.
type statusFlags struct {
	json, all, watch, ready bool
	wait                    time.Duration // for --ready
}

func (f *statusFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.json, "json", false, "print all as JSON; with --watch one object a line")
	cmd.Flags().BoolVar(&f.all, "all", false, "print all that is known, not one screen")
	cmd.Flags().BoolVar(&f.watch, "watch", false, "print it each second until interrupted, on a terminal in the same place")
	cmd.Flags().BoolVar(&f.ready, "ready", false, "print the verdict alone, and fail if packets go plain")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "with --ready, how long to wait until packets take their paths; fail after that")
	cmd.MarkFlagsMutuallyExclusive("json", "all", "ready")
	cmd.MarkFlagsMutuallyExclusive("watch", "ready")
}

// A screen's size where nobody looks at a terminal.
const (
	usualRows  = 24
	wideEnough = 120
)

const (
	// watchEvery is how often --watch asks.
	watchEvery = time.Second
	// askAgain is when one status is compared with the next. It is long enough for 25
	// packets at 1 Mbit/s, and short for who waits.
	askAgain = 250 * time.Millisecond
	// readyEvery is how often --wait asks.
	readyEvery = 100 * time.Millisecond
)

// run prints what ask returns, once or until ctx is done.
func (f *statusFlags) run(ctx context.Context, w io.Writer, ask func(context.Context) ([]byte, error)) error {
	switch {
	case f.wait < 0:
		return usagef("--wait=%v: must be positive", f.wait)
	case f.wait > 0 && !f.ready:
		return usagef("--wait=%v is for --ready: add it, or leave --wait out", f.wait)
	case f.ready:
		return f.awaitReady(ctx, w, ask)
	}
	s := statusScreen{w: w}
	s.rows, s.columns, s.terminal = terminalSize(w)
	if !f.watch {
		text, err := ask(ctx)
		if err != nil {
			return err
		}
		if f.json || f.all {
			return f.print(w, text)
		}
		s.take(text, time.Now())
		if sleep(ctx, askAgain) {
			if again, err := ask(ctx); err == nil {
				text = again
			}
		}
		return s.show(text, time.Now())
	}
	for asked := false; ; asked = true {
		text, err := ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !asked: // else the daemon may be about to come back
			return err
		}
		if !f.json {
			s.begin()
		}
		switch {
		case err != nil && f.json:
			fmt.Fprintln(os.Stderr, err)
		case err != nil:
			fmt.Fprintln(w, err)
		case f.json:
			fmt.Fprintf(w, "%s\n", text)
		case f.all:
			err = f.print(w, text)
		default:
			err = s.show(text, time.Now())
			s.take(text, time.Now())
		}
		if !sleep(ctx, watchEvery) {
			return nil
		}
	}
}

// awaitReady prints the verdict once the daemon is of use. It asks once, or until --wait is over.
func (f *statusFlags) awaitReady(ctx context.Context, w io.Writer, ask func(context.Context) ([]byte, error)) error {
	over := time.Now().Add(f.wait)
	for {
		text, err := ask(ctx)
		if err == nil {
			err = ready(w, text)
		}
		if err == nil || !time.Now().Before(over) {
			return err
		}
		if !sleep(ctx, readyEvery) {
			return ctx.Err()
		}
	}
}

// ready prints a status's verdict. It fails if the daemon is no use at the moment.
func ready(w io.Writer, text []byte) error {
	v, err := viewOf(text, nil, 0)
	if err != nil {
		return err
	}
	said := v.Headline()
	if v.Verdict == overview.VerdictPlain || v.Verdict == overview.VerdictEnded {
		return fmt.Errorf("status: not ready: %s", said)
	}
	_, err = fmt.Fprintln(w, said)
	return err
}

// sleep reports whether the time passed before ctx was done.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// print prints all of a status.
func (f *statusFlags) print(w io.Writer, text []byte) error {
	switch {
	case f.json:
		return printJSON(w, json.RawMessage(text))
	case isSwitchStatus(text):
		return printSwitchStatus(w, text)
	}
	return printHostStatus(w, text)
}

// statusScreen shows one status after the other.
type statusScreen struct {
	w             io.Writer
	rows, columns int
	terminal      bool

	before []byte // nil: none yet
	at     time.Time
}

// take remembers a status, with which the next one is compared.
func (s *statusScreen) take(text []byte, now time.Time) { s.before, s.at = text, now }

// begin goes to the top of a terminal, or marks the time.
func (s *statusScreen) begin() {
	if !s.terminal {
		fmt.Fprintf(s.w, "-- %s\n", time.Now().Format(time.TimeOnly))
		return
	}
	s.rows, s.columns, _ = terminalSize(s.w)
	fmt.Fprint(s.w, "\x1b[H\x1b[2J")
}

// show prints a status.
func (s *statusScreen) show(text []byte, now time.Time) error {
	v, err := viewOf(text, s.before, now.Sub(s.at))
	if err != nil {
		return err
	}
	_, err = io.WriteString(s.w, v.Text(s.rows, s.columns))
	return err
}

// viewOf is the View of a host's or a switch's status; before is an earlier one, nil for none.
func viewOf(text, before []byte, elapsed time.Duration) (overview.View, error) {
	if isSwitchStatus(text) {
		now, err := overview.ParseSwitch(text)
		if err != nil || before == nil {
			return now.View(nil, 0), err
		}
		was, err := overview.ParseSwitch(before)
		return now.View(&was, elapsed), err
	}
	now, err := overview.ParseHost(text)
	if err != nil || before == nil {
		return now.View(nil, 0), err
	}
	was, err := overview.ParseHost(before)
	return now.View(&was, elapsed), err
}
