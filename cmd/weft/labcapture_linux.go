package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weft/fabric"
	"weft/internal/capture/socket"
	"weft/internal/capture/stream"
	"weft/internal/daemon"
	"weft/lab"
	"weft/topology"
)

func newLabCaptureCmd(name *string) *cobra.Command {
	var f captureFlags
	cmd := &cobra.Command{
		Use:   "capture [NODE|NODE:PORT]...",
		Short: "Capture at many places of the lab at once",
		Long: `Capture sees packets at ports of the lab's nodes, such as h0.0.2:p0, all with one clock and in one file.
A node without a port stands for all of its ports; without arguments it captures at all hosts.
Where a weft host runs on a node it also shows what passes through that (see weft capture).
A packet whose outer header has been taken off keeps the path that it was seen with before, and
a timeline (--trace) shows how long each segment was on its way.`,
		Example: "  weft lab capture --write lab.pcapng --duration 10s\n" +
			"  weft lab capture h0.0.2 h3.1.3 --port 5201 --duration 5s --trace lab.json\n" +
			"  weft lab capture c1.1:p0 --kind probe",
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.check()
			if err != nil {
				return err
			}
			l, err := lab.Open(*name)
			if err != nil {
				return err
			}
			defer l.Close()
			w, err := f.lab(l, args)
			if err != nil {
				return err
			}
			return f.run(cmd, filter, w)
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&f.duration, "duration", 0, "end after this `duration`")
	return cmd
}

// labRing is the ring of each of many sockets, in bytes.
const labRing = 4 << 20

// lab opens what there is to see at nodes and ports.
func (f *captureFlags) lab(l *lab.Lab, places []string) (w watched, err error) {
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if l.Config.Graph == nil {
		w.topology = l.Config.Topology
	}
	if len(places) == 0 {
		for _, n := range l.Nodes() {
			if n.Layer == topology.LayerHost {
				places = append(places, n.Name)
			}
		}
	}
	asked := make(map[topology.NodeID]bool)
	for _, place := range places {
		node, port, one := strings.Cut(place, ":")
		n, err := l.Lookup(node)
		if err != nil {
			return w, usage(err)
		}
		plan, err := l.Plan(n.ID)
		if err != nil {
			return w, err
		}
		ports := []string{port}
		if known := devicesOf(plan); !one {
			ports = known
		} else if !slices.Contains(known, port) {
			return w, usagef("%s: %s has no port %q; it has %s", place, n.Name, port, strings.Join(known, ", "))
		}
		for _, port := range ports {
			c := socket.Config{Device: port, Name: n.Name + ":" + port, Snap: f.snap, Ring: labRing}
			var s *socket.Socket
			if err := l.Do(n.ID, func() (err error) { s, err = socket.Open(c); return err }); err != nil {
				return w, fmt.Errorf("lab capture: %s: %w", n.Name, err)
			}
			w.sources = append(w.sources, s)
		}
		if n.Layer == topology.LayerHost && !asked[n.ID] {
			asked[n.ID] = true
			var path string
			if err := l.Do(n.ID, func() (err error) { path, err = daemon.StatusSocket(); return err }); err != nil {
				return w, err
			}
			if c, err := stream.Dial(path, n.Name+":", f.snap); err == nil { // else no weft host runs there
				w.sources = append(w.sources, c)
			}
		}
	}
	return w, nil
}

// devicesOf are a node's ports.
func devicesOf(p fabric.NodePlan) (list []string) {
	for _, port := range p.Ports {
		list = append(list, port.Name)
	}
	return list
}
