package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weft/internal/schedulerd"
	"weft/internal/service"
)

// defaultSchedulerConfig is where packages put it.
const defaultSchedulerConfig = "/etc/weft/scheduler.yaml"

func newSchedulerCmd() *cobra.Command {
	var file string
	var print, check bool
	cmd := &cobra.Command{
		Use:   "scheduler",
		Short: "Place elephants on paths of their own, as one of several schedulers",
		Long: `Scheduler is a daemon that places elephants (Hedera). Hosts and edge switches report
the flows that take more than a tenth of a link; once a period it chooses paths for
them by simulated annealing or first fit, and tells the nodes. Several schedulers share
who leads, and the placements, by etcd. Without a scheduler flows go as before.
SIGHUP makes it read its keys and the topology again, SIGTERM ends it.`,
		Example: "  weft scheduler --print-config > scheduler.yaml\n  weft scheduler --config scheduler.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			switch {
			case print && check:
				return usagef("scheduler: --print-config and --check are two things to do; choose one")
			case print:
				fmt.Fprint(out, schedulerd.DefaultYAML())
				return nil
			case check:
				if _, err := schedulerd.Load(file); err != nil {
					return err
				}
				fmt.Fprintf(out, "%s is a valid configuration\n", file)
				return nil
			}
			signals, stop := service.Signals()
			defer stop()
			return schedulerd.Run(context.WithoutCancel(cmd.Context()), file, signals, cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", defaultSchedulerConfig, "the configuration `file`")
	f.BoolVar(&print, "print-config", false, "print a configuration with every default, and do nothing else")
	f.BoolVar(&check, "check", false, "check the configuration, and do nothing else")
	cmd.AddCommand(newSchedulerStatusCmd())
	return cmd
}

func newSchedulerStatusCmd() *cobra.Command {
	var socket string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "How the scheduler does: who leads, what is reported, placed and refused",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := askScheduler(cmd.Context(), socket)
			if err != nil {
				return err
			}
			if asJSON {
				_, err := cmd.OutOrStdout().Write(text)
				return err
			}
			return printScheduler(cmd.OutOrStdout(), text)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the scheduler's `socket` (default that of this network namespace)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print all as JSON")
	return cmd
}

// askScheduler asks the scheduler behind a socket; "" stands for the one of this network
// namespace.
func askScheduler(ctx context.Context, socket string) ([]byte, error) {
	if socket == "" {
		var err error
		if socket, err = schedulerd.StatusSocket(); err != nil {
			return nil, err
		}
	}
	text, err := service.AskStatus(ctx, socket, "weft scheduler")
	var s struct {
		Scheduler string `json:"scheduler"`
	}
	if err == nil && (json.Unmarshal(text, &s) != nil || s.Scheduler == "") {
		err = fmt.Errorf("status: at %s answers no scheduler; try weft status --socket %s", socket, socket)
	}
	return text, err
}

// printScheduler prints all fields of a status.
func printScheduler(w io.Writer, text []byte) error {
	fields, err := service.Fields(text)
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		fmt.Fprintf(t, "%s\t%s\n", f.Name, f.Value)
	}
	return t.Flush()
}
