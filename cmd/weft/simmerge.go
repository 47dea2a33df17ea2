package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"weft/bench/papers"
	"weft/bench/papers/parts"
)

func newSimMergeCmd() *cobra.Command {
	var o simOptions
	cmd := &cobra.Command{
		Use:   "merge DIRECTORY...",
		Short: "Put together what shards of a run gave",
		Long: `Merge reads the directories that weft sim run --shard has written (weft sim mutants
and decide likewise), and prints what one run of all would have printed: the same bytes. Only
what the run took of machines differs: in the JSON wall_s, cpu_s, packet_hops_per_cpu_s
and rss_mb, on the page of --report these and the machines.

It runs nothing. It needs the weft that ran, as verdicts are by its rules. It reads the
parts that the shards' plan names, and nothing else. It refuses plans of several runs or
builds, and names them; parts that are torn; and a run of which a part is missing.`,
		Example: "  weft sim merge results\n  weft sim merge machine1 machine2 --store bench/papers/results",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			return o.merge(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), experiments(), dirs)
		},
	}
	o.outputs(cmd)
	return cmd
}

func (o *simOptions) merge(ctx context.Context, w, notes io.Writer, all []papers.Experiment, names []string) error {
	var dirs []parts.Dir
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			return usagef("weft sim merge: %q is no directory: name those that weft sim run --shard has written", name)
		}
		dirs = append(dirs, parts.Dir{Name: filepath.Clean(name), Files: os.DirFS(name)})
	}
	m, err := parts.Merge(dirs...)
	if err != nil {
		return fmt.Errorf("weft sim merge: %w", err)
	}
	build, err := thisBuild()
	if err != nil {
		return err
	}
	if build != m.Build {
		return fmt.Errorf("weft sim merge: the parts are by %s, and this weft is %s: merge with the weft that ran", m.Build, build)
	}
	list, err := papers.Select(all, m.Names())
	if err != nil {
		return fmt.Errorf("weft sim merge: %s is bad: %w", m.File(), err)
	}
	if !slices.EqualFunc(list, m.Experiments, func(e papers.Experiment, name string) bool { return e.Name == name }) {
		return fmt.Errorf("weft sim merge: %s is bad: its experiments are not what it was asked for: remove it, and run a shard again, which writes it", m.File())
	}
	o.Quick, o.Seed, o.Seeds = m.Quick, m.Seed, m.Seeds
	b, err := o.batch(list, m.With)
	if err != nil {
		return fmt.Errorf("weft sim merge: %s: %w", m.File(), err)
	}
	if err := m.Load(papers.Units(b.Subjects, b.Options)); err != nil {
		return fmt.Errorf("weft sim merge: %w", err)
	}
	b.Keep = m
	return o.print(ctx, w, notes, &simTask{experiments: list, names: m.Names(), with: m.With, batch: b})
}
