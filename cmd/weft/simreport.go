package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"weft/bench/papers"
)

func newSimReportCmd() *cobra.Command {
	var o simOptions
	cmd := &cobra.Command{
		Use:   "report [NAME...]",
		Short: "Run experiments and draw the papers' figures beside ours, as a page of HTML",
		Long: `Report runs experiments (all, if none is named) and writes one page that needs
nothing else: verdicts, the papers' figures redrawn, every row and every parameter.

With --write it runs nothing, and writes the table of bench/RESULTS.md and the counts of
README.md and docs/research.md from the results that weft sim run --store has kept.`,
		Example: "  weft sim report\n  weft sim report 'drb-*' --quick -o drb.html\n  weft sim report --write .",
		RunE: func(cmd *cobra.Command, names []string) error {
			if o.write != "" {
				if len(names) > 0 {
					return usagef("--write=%s runs nothing: name no experiment", o.write)
				}
				return writeDocuments(o.write, experiments())
			}
			return o.report(cmd.Context(), cmd.ErrOrStderr(), experiments(), names)
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVarP(&o.output, "output", "o", "report.html", "`file` to write")
	cmd.Flags().StringVar(&o.write, "write", "", "`root` of the repository whose documents are to be renewed")
	return cmd
}

func (o *simOptions) report(ctx context.Context, notes io.Writer, all []papers.Experiment, names []string) error {
	if o.output == "" {
		return usagef(`--output="": name a file`)
	}
	t, err := o.task(all, names, alone)
	if err != nil {
		return err
	}
	file, err := newReportFile("output", o.output)
	if err != nil {
		return err
	}
	defer file.discard()
	run := o.runInfo()
	run.tell()
	var failed error
	var reports []*papers.Report
	err = o.reports(ctx, notes, t.batch, func(r *papers.Report, err error) {
		failed = errors.Join(failed, err)
		if err == nil {
			reports = append(reports, r)
		}
	})
	if ctx.Err() != nil {
		return err
	}
	if failed = errors.Join(failed, err); len(reports) == 0 {
		return failed
	}
	return errors.Join(failed, file.write(o.page(run, "report", names, reports).Write))
}

// page is what weft sim report writes of reports that a command has made, here or where
// their parts are from.
func (o *simOptions) page(run runInfo, command string, names []string, reports []*papers.Report) papers.Page {
	var facts []papers.Parameter
	for _, f := range run.facts() {
		if all := papers.Machines(reports...); f.Name == "Machine" && len(all) > 0 {
			f.Value = strings.Join(all, "; ")
		}
		facts = append(facts, papers.Parameter{Name: f.Name, Value: f.Value})
	}
	p := papers.Page{
		Command: fmt.Sprintf("%s --seed %d", strings.Join(append([]string{"weft sim", command}, names...), " "), o.Seed),
		Facts:   facts,
		Reports: reports,
	}
	if o.Jobs > 0 { // 0: shards had their own
		p.Command += fmt.Sprintf(" -j %d", o.Jobs)
	}
	if o.Seeds > 1 {
		p.Command += fmt.Sprintf(" --seeds %d", o.Seeds)
	}
	if o.Quick {
		p.Command += " --quick"
	}
	return p
}
