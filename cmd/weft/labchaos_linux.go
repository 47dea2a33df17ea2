package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/chaos"
	"weft/lab"
)

func newLabChaosCmd(name *string) *cobra.Command {
	c := chaos.Config{}
	cmd := &cobra.Command{
		Use:   "chaos",
		Short: "Links and switches that fail and heal at random, from a seed",
		Long: `Chaos lets links and switches of the lab fail, heal and flap, loudly and
silently, and prints each event when it has happened. The same seed gives the
same events. No pair of racks is ever cut off. In the end, and when interrupted,
everything that it made fail is healed.`,
		Example: "  weft lab chaos --seed 7 --duration 1m",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withLab(*name, func(lab *lab.Lab) error {
				if lab.Config.Graph != nil {
					return usagef("lab chaos: knows computed fabrics only; use lab fail")
				}
				c.Topology = lab.Config.Topology
				if len(lab.Config.Only) > 0 {
					return usagef("lab chaos: this lab is only a part of its topology, which chaos does not know how to keep connected; use lab fail")
				}
				if failed, err := lab.Failures(); err != nil || len(failed) > 0 {
					return errors.Join(err, fmt.Errorf("lab chaos: begins with a whole lab, but %s; weft lab heal --name %s", failureList(failed), *name))
				}
				events, err := chaos.Sequence(c)
				if err != nil {
					return usage(err)
				}
				return playChaos(cmd.Context(), cmd.OutOrStdout(), lab, events)
			})
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&c.Seed, "seed", 1, "what the events are made from")
	flags.DurationVar(&c.Duration, "duration", time.Minute, "how long it lasts")
	flags.DurationVar(&c.Interval, "interval", 500*time.Millisecond, "mean time between failures")
	flags.DurationVar(&c.Outage, "outage", time.Second, "mean duration of a failure")
	flags.IntVar(&c.AtOnce, "at-once", 2, "most links and switches that have failed at a time")
	flags.Float64Var(&c.Switches, "switches", chaos.DefaultSwitches, "share of failures that hit a whole switch")
	flags.Float64Var(&c.Silences, "silent", chaos.DefaultSilences, "share of failures that are silent")
	flags.Float64Var(&c.Flaps, "flaps", chaos.DefaultFlaps, "share of failures that flap")
	return cmd
}

// playChaos makes the events happen at their times, and heals what has failed
// when ctx ends before they do.
func playChaos(ctx context.Context, w io.Writer, lab *lab.Lab, events []chaos.Event) (err error) {
	failed := make(map[string]bool)
	defer func() {
		for target := range failed {
			if _, e := lab.Heal(target); e != nil {
				err = errors.Join(err, e)
			}
		}
	}()
	start := time.Now()
	for _, e := range events {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(start.Add(e.At))):
		}
		at, err := applyChaos(lab, e)
		if err != nil {
			return err
		}
		if e.Heals() {
			delete(failed, e.Target)
		} else {
			failed[e.Target] = true
		}
		e.At = at.Sub(start)
		fmt.Fprintln(w, e)
	}
	return nil
}

func applyChaos(l *lab.Lab, e chaos.Event) (time.Time, error) {
	if e.Heals() {
		return l.Heal(e.Target)
	}
	return l.Fail(e.Target, lab.FailureMode(e.Mode))
}
