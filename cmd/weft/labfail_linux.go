package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weft/lab"
)

func newLabFailCmd(name *string) *cobra.Command {
	var silent, dataOnly bool
	cmd := &cobra.Command{
		Use:   "fail LINK|NODE...",
		Short: "Make links, or nodes with all their links, fail",
		Long: `Fail takes links down: the port at the upper end is set down, and the lower end
loses its carrier. With --silent the links stay up and drop everything, so that
only who sends over them can tell; with --data-only they let the switches'
messages (UDP port 9338) pass. A link is named by its ends, in either order.`,
		Example: "  weft lab fail e0.0-a0.2\n  weft lab fail --silent 3.0",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			mode := lab.FailLoud
			switch {
			case dataOnly:
				mode = lab.FailSilentData
			case silent:
				mode = lab.FailSilent
			}
			return withLab(*name, func(lab *lab.Lab) error {
				for _, target := range args {
					if _, err := lab.Fail(target, mode); err != nil {
						return err
					}
				}
				return printFailures(cmd.OutOrStdout(), lab)
			})
		},
	}
	cmd.Flags().BoolVar(&silent, "silent", false, "keep the links up and drop everything")
	cmd.Flags().BoolVar(&dataOnly, "data-only", false, "as --silent, but let the switches' messages pass")
	return cmd
}

func newLabHealCmd(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "heal [LINK|NODE]...",
		Short: "Undo failures, all of them if none is named",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withLab(*name, func(lab *lab.Lab) error {
				if _, err := lab.Heal(args...); err != nil {
					return err
				}
				return printFailures(cmd.OutOrStdout(), lab)
			})
		},
	}
}

func withLab(name string, f func(*lab.Lab) error) error {
	lab, err := lab.Open(name)
	if err != nil {
		return err
	}
	defer lab.Close()
	return f(lab)
}

// printFailures says what has failed in the lab now.
func printFailures(w io.Writer, lab *lab.Lab) error {
	failed, err := lab.Failures()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "lab %s: %s\n", lab.Config.Name, failureList(failed))
	return nil
}
