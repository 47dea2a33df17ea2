package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"weft/internal/service"
	"weft/internal/switchd"
)

// defaultSwitchConfig is where packages put it.
const defaultSwitchConfig = "/etc/weft/switch.yaml"

func newSwitchCmd() *cobra.Command {
	var file string
	var print, check bool
	cmd := &cobra.Command{
		Use:   "switch",
		Short: "Be a switch's agent: tell of links that fail, and route around them",
		Long: `Switch is a daemon on a Linux switch. It watches the ports' carrier, says hello to
the neighbours, tells them and the servers of links that are down, and keeps the
switch's routes accordingly. SIGHUP makes it read its keys again, SIGTERM ends it,
which leaves links and routes as they are. Begin it as root: it becomes another
user and keeps two capabilities.`,
		Example: "  weft switch --print-config > switch.yaml\n  weft switch --config switch.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			switch {
			case print && check:
				return usagef("switch: --print-config and --check are two things to do; choose one")
			case print:
				fmt.Fprint(out, switchd.DefaultYAML())
				return nil
			case check:
				f, err := switchd.Load(file)
				if err == nil {
					err = f.Here(file)
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(out, "%s is a valid configuration\n", file)
				return nil
			}
			return runSwitch(cmd, file)
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", defaultSwitchConfig, "the configuration `file`")
	f.BoolVar(&print, "print-config", false, "print a configuration with every default, and do nothing else")
	f.BoolVar(&check, "check", false, "check the configuration, and do nothing else")
	cmd.AddCommand(newSwitchStatusCmd())
	return cmd
}

// runSwitch hands the signals to the agent, whom SIGHUP is not to end.
func runSwitch(cmd *cobra.Command, file string) error {
	signals, stop := service.Signals()
	defer stop()
	return switchd.Run(context.WithoutCancel(cmd.Context()), file, signals, cmd.ErrOrStderr())
}
