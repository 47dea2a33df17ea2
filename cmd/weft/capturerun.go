package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"weft/internal/capture"
	"weft/internal/capture/session"
	"weft/internal/capture/socket"
	"weft/internal/capture/stream"
	"weft/internal/daemon"
	"weft/topology"
)

func newCaptureCmd() *cobra.Command {
	var f captureFlags
	var interfaces []string
	var path string
	cmd := &cobra.Command{
		Use:   "capture",
		Short: "Capture packets with their paths, flowcells, holds and causes, for Wireshark",
		Long: `Capture sees this host's packets at its uplinks, with their outer headers, and asks the running
weft host for what passes through it: what arrives, what the resequencer has let go
(how long it held each packet, and why it let it go), and what weft sends itself. In mode offload
the kernel passes what is in order, so weft shows only the rest. Each packet has a comment: the
path and its bouncing switch, the flowcell and the segment's place in it, whether it was sent
again. packaging/wireshark/weft.lua has Wireshark and tshark decode weft's own messages, and
filter by what comments say (weft.note.path).

Without --write it prints a line for each packet. With --trace it writes a timeline of
connections. It ends when interrupted, or at a bound. What finds no room is counted as
dropped, by source. It needs CAP_NET_RAW for devices, and root for what weft shows.`,
		Example: "  weft capture --write run.pcapng --duration 10s\n" +
			"  weft capture --port 5201 --snap 128 --write ring.pcapng --size 100000000 --files 5\n" +
			"  weft capture --flow 10.0.0.2:40000-10.3.1.3:5201 --duration 5s --trace run.json\n" +
			"  weft capture --kind probe,sample --count 20\n" +
			"  weft capture -w - | wireshark -k -i -",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.check()
			if err != nil {
				return err
			}
			h, err := f.host(cmd.Context(), path, interfaces)
			if err != nil {
				return err
			}
			return f.run(cmd, filter, h)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&f.duration, "duration", 0, "end after this `duration`")
	flags.StringSliceVarP(&interfaces, "interface", "i", nil, "the `devices` (default the uplinks of the weft host of this network namespace)")
	flags.StringVar(&path, "socket", "", "the daemon's `socket` (default that of this network namespace)")
	flags.StringVar(&f.topology, "topology", "", "the fabric, which names the paths: a `spec` or a file (default that of the weft host)")
	cmd.AddCommand(newCaptureReadCmd())
	return cmd
}

// watched is what is captured.
type watched struct {
	sources  []captureSource
	topology *topology.Topology
	notes    []string // what is not captured, and why
}

// captureSource is a session.Source that is closed.
type captureSource interface {
	session.Source
	io.Closer
}

func (w *watched) close() {
	for _, s := range w.sources {
		s.Close()
	}
}

// host opens what there is to see of this network namespace's host.
func (f *captureFlags) host(ctx context.Context, path string, interfaces []string) (w watched, err error) {
	if w.topology, err = f.fabric(); err != nil {
		return w, err
	}
	text, asked := askStatus(ctx, path)
	var s daemon.Status
	if asked == nil && (json.Unmarshal(text, &s) != nil || isSwitchStatus(text)) {
		asked = fmt.Errorf("what answers is no weft host")
	}
	if asked == nil {
		if w.topology == nil {
			if w.topology, err = topology.Parse(s.Topology); err != nil {
				w.notes = append(w.notes, fmt.Sprintf("paths have no names: the fabric is %q; --topology tells it", s.Topology))
				w.topology = nil
			}
		}
		if len(interfaces) == 0 {
			interfaces = captureDevices(&s)
		}
	}
	if len(interfaces) == 0 {
		return w, usagef("--interface is missing, and there is no weft host to ask for its uplinks: %w", asked)
	}
	for _, device := range interfaces {
		c, err := socket.Open(socket.Config{Device: device, Snap: f.snap})
		if err != nil {
			w.close()
			return w, fmt.Errorf("capture: %w", err)
		}
		w.sources = append(w.sources, c)
	}
	if asked != nil {
		w.notes = append(w.notes, fmt.Sprintf("holds and causes are not known: %v", asked))
		return w, nil
	}
	if path == "" {
		if path, err = daemon.StatusSocket(); err != nil {
			w.close()
			return w, err
		}
	}
	c, err := stream.Dial(path, "", f.snap)
	if err != nil {
		w.notes = append(w.notes, fmt.Sprintf("holds and causes are not known: %v", err))
		return w, nil
	}
	w.sources = append(w.sources, c)
	return w, nil
}

// captureDevices are a host's uplinks.
func captureDevices(s *daemon.Status) (list []string) {
	for _, u := range s.Uplinks {
		list = append(list, u.Device)
	}
	if s.Uplink != "" && !slices.Contains(list, s.Uplink) {
		list = append(list, s.Uplink)
	}
	return list
}

// run captures what w has, and closes it.
func (f *captureFlags) run(cmd *cobra.Command, filter capture.Filter, w watched) error {
	defer w.close()
	for _, n := range w.notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", n)
	}
	s, err := f.open(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	a := f.annotator(w.topology)
	c := session.Config{Annotator: a, Filter: filter, Write: s.write, Tick: s.tick, Duration: f.duration}
	for _, source := range w.sources {
		c.Sources = append(c.Sources, source)
	}
	res, err := session.Run(cmd.Context(), c)
	if closed := s.close(cmd.ErrOrStderr(), res, a, w.notes); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	return nil
}
