package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weft/internal/daemon"
	"weft/internal/service"
	"weft/internal/switchd"
)

func newStatusCmd() *cobra.Command {
	var socket string
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "How the weft host or weft switch of this machine does",
		Long: `Status prints one screen about the weft host or weft switch that runs here: the
verdict, what is wrong and what to do about it, and the paths, racks or ports, the
worst first. It asks twice, 250 ms apart, for the rate of each path and for what
was dropped in between.

--ready prints the verdict alone, and fails while packets go by the kernel's own routes: for
scripts and probes that wait for a host. --wait has it wait, also for a daemon that has not begun.

--all prints all that the daemon says of itself: its configuration as found, what is
known of failures and why, what its devices got of the kernel, its counters, and what
its policy knows of the congestion of paths (weft paths --live prints that alone).
--json prints the same for programs; weft schema status describes it.`,
		Example: "  weft status\n  weft status --watch\n  weft status --ready --wait 1m && curl -O http://10.3.1.3/file",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), func(ctx context.Context) ([]byte, error) { return askStatus(ctx, socket) })
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the daemon's `socket` (default that of this network namespace)")
	f.add(cmd)
	return cmd
}

// printHostStatus prints all fields of a host's status. What it says about congestion, path
// by path, becomes tables.
func printHostStatus(w io.Writer, text []byte) error {
	fields, err := service.Fields(text)
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		if !strings.HasPrefix(f.Name, "congestion.") {
			fmt.Fprintf(t, "%s\t%s\n", f.Name, f.Value)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	s, err := parseLive(text)
	if err != nil {
		return err
	}
	return printCongestion(w, s.Congestion)
}

// The daemons that answer.
const (
	anyDaemon   = "weft host or weft switch"
	switchAgent = "weft switch"
)

// askStatus asks who is behind a socket; "" stands for the host of this network
// namespace, or else the switch.
func askStatus(ctx context.Context, socket string) ([]byte, error) {
	if socket != "" {
		return service.AskStatus(ctx, socket, anyDaemon)
	}
	host, err := daemon.StatusSocket()
	if err != nil {
		return nil, err
	}
	text, err := service.AskStatus(ctx, host, anyDaemon)
	if err == nil {
		return text, nil
	}
	if agent, err2 := switchd.StatusSocket(); err2 == nil {
		if text, err2 := service.AskStatus(ctx, agent, switchAgent); err2 == nil {
			return text, nil
		}
	}
	return nil, err
}
