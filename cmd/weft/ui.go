package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/live"
	"weft/internal/live/source"
	"weft/internal/live/ui"
	"weft/lab"
)

// uiFlags are those of weft ui and weft lab ui.
type uiFlags struct {
	listen   string
	remote   bool
	interval time.Duration
}

func (f *uiFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.listen, "listen", ui.DefaultListen, "`address` and port of the page, port 0 for any; or the path of a Unix socket")
	cmd.Flags().BoolVar(&f.remote, "remote", false, "let --listen be an address that others reach: they see all, and nothing is encrypted")
	cmd.Flags().DurationVar(&f.interval, "interval", ui.DefaultInterval, "from one look to the next; longer where looking takes long")
}

// open opens the page's listener.
func (f *uiFlags) open() (*ui.Listener, error) {
	if f.interval < ui.MinInterval {
		return nil, usagef("--interval %v: must be %v or more", f.interval, ui.MinInterval)
	}
	l, err := ui.Listen(f.listen, f.remote)
	switch {
	case errors.Is(err, ui.ErrReachable):
		return nil, usagef("--listen: %w, or say --remote", err)
	case err != nil:
		return nil, usagef("--listen: %w", err)
	}
	return l, nil
}

// serve serves the picture of a source until ctx is done. key says that the address has the key,
// by which links can be broken.
func (f *uiFlags) serve(ctx context.Context, cmd *cobra.Command, src live.Source) error {
	l, err := f.open()
	if err != nil {
		return err
	}
	defer l.Close()
	s := ui.New(src, ui.Options{Interval: f.interval})
	key := ""
	if _, ok := src.(live.Breaker); ok {
		key = s.Key()
	}
	if l.Remote() {
		fmt.Fprintln(os.Stderr, "warning: others than this host reach the page: they see all that it shows, and what is sent is not encrypted. Who has the key in its address can break links of the lab.")
	}
	fmt.Fprintln(cmd.OutOrStdout(), l.URL(key))
	return s.Serve(ctx, l)
}

func newUICmd() *cobra.Command {
	var f uiFlags
	var ofLab bool
	var name, socket string
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "A live picture of the fabric, in a browser",
		Long: `Ui serves a page at a loopback address: the fabric with each link's utilisation, queue, losses
and failures, as they change; the connections, and the paths of the one that is selected; what
happened in the last ten minutes, with a slider to look at any moment of them.

It shows what the weft host of this network namespace sees: the topology and what it suspects, its
ways up with their shares, and its connections. With --lab it shows all of a lab, in which links
and switches can be made to fail by a click. The address that it prints has a key behind the #,
which that takes.`,
		Example: "  weft ui\n  weft ui --lab\n  weft ui --listen /run/weft-ui.sock",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch flags := cmd.Flags(); {
			case ofLab && flags.Changed("socket"):
				return usagef("--socket names a weft host's socket, --lab a lab: give one")
			case !ofLab && flags.Changed("name"):
				return usagef("--name names a lab: give --lab, too")
			}
			if ofLab {
				return runLabUI(cmd, name, &f)
			}
			if _, err := parseHostStatus(cmd.Context(), socket); err != nil {
				return fmt.Errorf("ui: %w", err)
			}
			src := source.LocalHost(func(ctx context.Context) ([]byte, error) { return askStatus(ctx, socket) })
			return f.serve(cmd.Context(), cmd, src)
		},
	}
	cmd.Flags().BoolVar(&ofLab, "lab", false, "show a lab")
	cmd.Flags().StringVar(&name, "name", lab.DefaultName, "the lab")
	cmd.Flags().StringVar(&socket, "socket", "", "the daemon's `socket` (default that of this network namespace)")
	f.add(cmd)
	return cmd
}

// parseHostStatus asks a weft host for its status once, to say what is wrong before a page is
// opened.
func parseHostStatus(ctx context.Context, socket string) (liveStatus, error) {
	text, err := askStatus(ctx, socket)
	if err != nil {
		return liveStatus{}, err
	}
	return parseLive(text)
}
