// Command weft sprays TCP connections over every path of a Clos fabric, and
// builds such fabrics out of Linux machines or network namespaces.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"weft/internal/exitcode"
	"weft/internal/shortage"
)

func main() { os.Exit(run()) }

func run() int {
	// Whatever ends weft must let it clean up, also a terminal that goes away (SIGHUP) and
	// a reader of its output that does (SIGPIPE).
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE) // caught, not ignored: that would outlive exec
	err := execute(ctx, newRootCmd())
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "weft: "+interruption(err))
	default:
		fmt.Fprintln(os.Stderr, "weft: "+strings.TrimPrefix(strings.TrimPrefix(shortage.Explain(err).Error(), "weft: "), "weft "))
	}
	return exitcode.Of(err)
}

func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:           "weft",
		Short:         "One TCP connection over every path of a Clos fabric",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		newBenchCmd(),
		newCaptureCmd(),
		newCommandsCmd(),
		newDemoCmd(),
		newDoctorCmd(),
		newHostCmd(),
		newKeygenCmd(),
		newLabCmd(),
		newPathsCmd(),
		newPlanCmd(),
		newSchemaCmd(),
		newSimCmd(),
		newStatusCmd(),
		newBlameCmd(),
		newBugreportCmd(),
		newConnsCmd(),
		newSwitchCmd(),
		newSchedulerCmd(),
		newTopCmd(),
		newTopologyCmd(),
		newTraceCmd(),
		newUICmd(),
		newVersionCmd(),
	)
	completeValues(root)
	return root
}

// printJSON writes v for programs to read.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
