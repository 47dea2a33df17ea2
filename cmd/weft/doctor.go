package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"weft/internal/doctor"
	"weft/internal/doctor/gather"
	"weft/internal/exitcode"
	"weft/lab"
)

func newDoctorCmd() *cobra.Command {
	var o gather.Options
	var asJSON, ofFabric bool
	var name string
	var remote sshFabric
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "What is wrong with weft here, why, and how to mend it",
		Long: `Doctor looks at the kernel, the configuration, the network's settings and devices, the firewall, and
at what the running weft host or weft switch sees, and prints what is wrong with cause and fix, the most likely
root first. It changes nothing. It takes root to look at everything; what was not looked at it says.

With --fabric it looks at all nodes of a lab, or with --ssh at those machines, on which it runs weft doctor
--json by the program ssh. Exit status: 0 all is well, 1 something is wrong, 2 the command line is wrong, 3 there
is nothing to check on this system.`,
		Example: "  weft doctor\n  weft doctor --json\n  weft doctor --fabric --ssh spine1,spine2,web1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(remote.hosts) > 0 && !ofFabric {
				return usagef("doctor: --ssh names machines of a fabric: add --fabric")
			}
			o.Between = askAgain
			who, all, err := "", []doctor.Finding(nil), error(nil)
			switch {
			case len(remote.hosts) > 0:
				who, all = fmt.Sprintf("%d machines", len(remote.hosts)), remote.examine(cmd.Context())
			case ofFabric:
				who, all, err = examineLab(cmd.Context(), name, o)
			default:
				who, all, err = examineHere(cmd.Context(), o)
			}
			if errors.Is(err, gather.ErrNothing) {
				return exitcode.AsAbsent(err)
			}
			if err != nil {
				return err
			}
			return reportFindings(cmd.OutOrStdout(), who, all, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.HostConfig, "config", defaultHostConfig, "the configuration `file` of weft host; that of a running daemon is known")
	f.StringVar(&o.SwitchConfig, "switch-config", defaultSwitchConfig, "the configuration `file` of weft switch")
	f.StringVar(&o.Socket, "socket", "", "the daemon's `socket` (default that of this network namespace)")
	f.BoolVar(&asJSON, "json", false, "print JSON: an array of objects with node (of --fabric), check, ok, cause, fix, skipped (why a check was not made) and weight")
	f.BoolVar(&ofFabric, "fabric", false, "look at all nodes of a lab, or at those of --ssh")
	f.StringVar(&name, "name", lab.DefaultName, "with --fabric: the `lab`")
	remote.flags(f)
	return cmd
}

// reportFindings prints findings. It fails if something is wrong.
func reportFindings(w io.Writer, who string, all []doctor.Finding, asJSON bool) error {
	if asJSON {
		if err := printJSON(w, append([]doctor.Finding{}, all...)); err != nil {
			return err
		}
	} else if _, err := io.WriteString(w, doctor.Text(who, all)); err != nil {
		return err
	}
	if n := doctor.Wrong(all); n > 0 {
		return fmt.Errorf("doctor: %d of %d checks found something wrong", n, len(all))
	}
	return nil
}

// examineHere looks at this machine.
func examineHere(ctx context.Context, o gather.Options) (who string, all []doctor.Finding, err error) {
	f, err := gather.Facts(ctx, o)
	if err != nil {
		return "", nil, err
	}
	return whoIs(f), doctor.Examine(f), nil
}

// whoIs names the machine that facts are of.
func whoIs(f *doctor.Facts) string {
	switch {
	case f.Host != nil && f.Host.Address != "":
		return "host " + f.Host.Address
	case f.Switch != nil:
		return "switch " + f.Switch.Switch
	case f.Plan != nil:
		return "switch " + f.Plan.Node
	}
	name, err := os.Hostname()
	if err != nil {
		return f.Role
	}
	return f.Role + " " + name
}
