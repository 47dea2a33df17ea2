package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"weft/internal/daemon"
	"weft/internal/doctor"
	"weft/internal/doctor/gather"
	"weft/internal/exitcode"
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
					err = c.Here(file)
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(out, "%s is a valid configuration\n", file)
				return checkHost(cmd.Context(), out, file)
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
	f.BoolVar(&check, "check", false, "check the configuration and whether this machine has what it names, and do nothing else")
	f.BoolVar(&cleanup, "cleanup", false, "remove what a daemon that died has left, and do nothing else")
	return cmd
}

// checkHost says what keeps a host from running by a configuration here. It fails if the
// configuration names a user, a device or an address that this machine does not have. What else
// is wrong may be so on purpose where a file is checked on another machine.
func checkHost(ctx context.Context, w io.Writer, file string) (err error) {
	f, missing := gather.Facts(ctx, gather.Options{HostConfig: file, Offline: true})
	if missing != nil {
		return nil // it is no host
	}
	for _, g := range doctor.Examine(f) {
		switch {
		case g.OK:
		case g.Named():
			err = exitcode.AsUsage(errors.Join(err, fmt.Errorf("%s; to mend it: %s", g.Cause, g.Fix)))
		default:
			fmt.Fprintf(w, "but on this machine: %s: %s\n  fix: %s\n", g.Check, g.Cause, g.Fix)
		}
	}
	return err
}

// runHost hands the signals to the daemon, whom SIGHUP is not to end.
func runHost(cmd *cobra.Command, file string) error {
	signals, stop := service.Signals()
	defer stop()
	return daemon.Run(context.WithoutCancel(cmd.Context()), file, signals, cmd.ErrOrStderr())
}
