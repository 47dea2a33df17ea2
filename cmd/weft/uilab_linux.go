package main

import (
	"github.com/spf13/cobra"

	"weft/internal/live"
	"weft/internal/live/source"
)

func newLabUICmd(name *string) *cobra.Command {
	var f uiFlags
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "A live picture of the lab, in a browser, in which links are broken by a click",
		Long: `Ui is weft ui --lab: a page that shows the lab as it changes. Links and nodes are made to fail
and healed by a click; the address that it prints has the key which that takes.`,
		Example: "  weft lab ui\n  weft lab ui --name big --listen 127.0.0.1:0",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runLabUI(cmd, *name, &f) },
	}
	f.add(cmd)
	return cmd
}

// runLabUI shows a lab until the command is interrupted.
func runLabUI(cmd *cobra.Command, name string, f *uiFlags) error {
	src, err := source.OpenLab(name, live.KindLab)
	if err != nil {
		return err
	}
	defer src.Close()
	return f.serve(cmd.Context(), cmd, src)
}
