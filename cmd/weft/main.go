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
	"syscall"

	"github.com/spf13/cobra"

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
	if err := newRootCmd().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "weft:", shortage.Explain(err))
		if e := (ended{}); errors.As(err, &e) {
			return e.status
		}
		return 1
	}
	return 0
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
		newConnsCmd(),
		newSwitchCmd(),
		newTopologyCmd(),
		newVersionCmd(),
	)
	return root
}

// printJSON writes v for programs to read.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
