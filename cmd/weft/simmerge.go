package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
--shard likewise), and prints what one run of all would have printed: the same bytes. It
runs nothing. It needs the weft that ran, as verdicts are by its rules.

It refuses parts of several builds, of several runs, or with another form than the run's,
and names both; files that are torn; and a run of which a part is missing.`,
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
	list, err := papers.Select(all, m.Experiments)
	if err != nil {
		return fmt.Errorf("weft sim merge: the plan has %w", err)
	}
	o.Quick, o.Seed, o.Seeds, o.Jobs = m.Quick, m.Seed, m.Seeds, 1
	b, err := o.batch(list, m.Mutants)
	if err != nil {
		return err
	}
	if err := m.Complete(papers.Units(b.Subjects, b.Options)); err != nil {
		return fmt.Errorf("weft sim merge: %w", err)
	}
	b.Keep = m
	if m.Mutants {
		return o.printTrials(ctx, w, notes, b)
	}
	return o.printReports(ctx, w, notes, list, m.Experiments, b)
}
