package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"weft/internal/daemon"
	"weft/internal/service"
)

// defaultHostConfig is where packages put it.
const defaultHostConfig = "/etc/weft/host.yaml"

func newHostCmd() *cobra.Command {
	var file string
	var print, check, cleanup bool
	cmd := &cobra.Command{
		Use:   "host",
		Short: "Spray the TCP of all programs of this machine",
		Long: `Host is a daemon that puts weft below the kernel's sockets: programs need no
change and no configuration. SIGHUP makes it read its configuration again, SIGTERM
ends it; connections outlive both. Begin it as root: it becomes another user and
keeps three capabilities.`,
		Example: "  weft host --print-config > host.yaml\n  weft host --config host.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			switch {
			case print && cleanup || print && check || check && cleanup:
				return usagef("host: --print-config, --check and --cleanup are three things to do; choose one")
			case print:
				fmt.Fprint(out, daemon.DefaultYAML())
				return nil
			case check:
				c, err := daemon.Load(file)
				if err == nil {
					err = c.Here()
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(out, "%s is a valid configuration\n", file)
				return nil
			case cleanup:
				removed, err := daemon.Cleanup()
				if len(removed) == 0 && err == nil {
					removed = []string{"nothing was left"}
				}
				if len(removed) > 0 {
					fmt.Fprintln(out, "clean-up:", strings.Join(removed, ", "))
				}
				return err
			}
			return runHost(cmd, file)
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", defaultHostConfig, "the configuration `file`")
	f.BoolVar(&print, "print-config", false, "print a configuration with every default, and do nothing else")
	f.BoolVar(&check, "check", false, "check the configuration, and do nothing else")
	f.BoolVar(&cleanup, "cleanup", false, "remove what a daemon that died has left, and do nothing else")
	return cmd
}

// runHost hands the signals to the daemon, whom SIGHUP is not to end.
func runHost(cmd *cobra.Command, file string) error {
	signals, stop := service.Signals()
	defer stop()
	return daemon.Run(context.WithoutCancel(cmd.Context()), file, signals, cmd.ErrOrStderr())
}
