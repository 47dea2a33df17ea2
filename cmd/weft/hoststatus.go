package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weft/internal/daemon"
)

func newStatusCmd() *cobra.Command {
	var socket string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "What the weft host of this machine does",
		Long: `Status prints what a running weft host says of itself: its configuration as
found, what its devices got of the kernel, and its counters.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if socket == "" {
				var err error
				if socket, err = daemon.StatusSocket(); err != nil {
					return err
				}
			}
			text, err := daemon.AskStatus(cmd.Context(), socket)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), json.RawMessage(text))
			}
			fields, err := daemon.Fields(text)
			if err != nil {
				return fmt.Errorf("status: %w", err)
			}
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, f := range fields {
				fmt.Fprintf(t, "%s\t%s\n", f.Name, f.Value)
			}
			return t.Flush()
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the daemon's `socket` (default that of this network namespace)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
