package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/kernel"
	"weft/internal/table"
	"weft/topology"
)

// connsVersion rises when a key of connsJSON goes or comes to mean something else. New keys do
// not raise it.
const connsVersion = 1

// connsJSON is what weft conns prints with --json.
type connsJSON struct {
	Version     int          `json:"version"`     // connsVersion
	Connections []connection `json:"connections"` // the worst first
	More        int          `json:"more"`        // that --top leaves out
}

// connection is one of the kernel's, and the remote end in the topology of the weft host.
type connection struct {
	kernel.Connection
	Host string `json:"host,omitempty"`
	Rack string `json:"rack,omitempty"`
}

// worse orders connections: those that wait for a timeout first, then by what was sent again.
func worse(a, b connection) int {
	return cmp.Or(cmp.Compare(b.Timeouts, a.Timeouts), cmp.Compare(b.Resent, a.Resent), cmp.Compare(b.Sent+b.Received, a.Sent+a.Received),
		a.Remote.Compare(b.Remote), a.Local.Compare(b.Local))
}

func newConnsCmd() *cobra.Command {
	var socket, to string
	var asJSON bool
	var top int
	cmd := &cobra.Command{
		Use:   "conns",
		Short: "The kernel's TCP connections, those first that packets were lost of",
		Long: `Conns lists the TCP connections of this network namespace with other hosts: what they have carried,
what was sent again, what came out of order above weft, and their round trips. These are the
established ones, and those that are being opened or closed and wait for an answer to what they
have sent. Connections that wait for a timeout come first, then those that have sent most segments
again. It asks the kernel, so it works without a weft host; with one it names the hosts at the
other end.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if top < 1 {
				return usagef("--top %d: must be 1 or more", top)
			}
			known, err := kernel.Connections()
			if err != nil {
				return fmt.Errorf("conns: %w", err)
			}
			all := nameHosts(cmd.Context(), socket, known)
			if to != "" {
				all = slices.DeleteFunc(all, func(c connection) bool {
					return c.Host != to && c.Rack != to && c.Remote.Addr().String() != to
				})
			}
			slices.SortFunc(all, worse)
			if asJSON {
				return printJSON(cmd.OutOrStdout(), connsJSON{connsVersion, append([]connection{}, all[:min(top, len(all))]...), max(0, len(all)-top)})
			}
			return printConns(cmd.OutOrStdout(), all, top)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the daemon's `socket` (default that of this network namespace)")
	cmd.Flags().StringVar(&to, "to", "", "only those with a `host`, a rack or an address")
	cmd.Flags().IntVar(&top, "top", 20, "at most so `many`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// nameHosts says which hosts of the weft host's topology connections lead to, if there is one that
// can be asked, and its topology is computed.
func nameHosts(ctx context.Context, socket string, known []kernel.Connection) []connection {
	all := make([]connection, len(known))
	for i, c := range known {
		all[i].Connection = c
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	text, err := askStatus(ctx, socket)
	if err != nil {
		return all
	}
	var s struct {
		Topology string `json:"topology"`
	}
	if json.Unmarshal(text, &s) != nil {
		return all
	}
	t, err := topology.Parse(s.Topology)
	if err != nil {
		return all
	}
	for i := range all {
		if host, rack, ok := t.HostAt(all[i].Remote.Addr()); ok {
			all[i].Host, all[i].Rack = t.HostName(host), t.Node(rack).Name
		}
	}
	return all
}

// printConns prints a table of the first connections.
func printConns(w io.Writer, all []connection, top int) error {
	if len(all) == 0 {
		fmt.Fprintln(w, "no TCP connections with other hosts")
		return nil
	}
	t := table.NewWriter(w, -1)
	fmt.Fprintln(t, "to\thost\tfrom port\tstate\tsent MB\tgot MB\twaits kB\tresent\tneedless\tout of order\tRTT ms\tMbit/s")
	for _, c := range all[:min(top, len(all))] {
		host := c.Host
		if host == "" {
			host = "-"
		}
		fmt.Fprintf(t, "%v\t%s\t%d\t%s\t%.1f\t%.1f\t%.0f\t%d\t%d\t%d\t%.1f\t%.0f\n", c.Remote, host, c.Local.Port(), c.State, float64(c.Sent)/1e6,
			float64(c.Received)/1e6, float64(c.Waiting)/1e3, c.Resent, c.Needless, c.OutOf, c.RTT, c.Delivered)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if n := len(all) - top; n > 0 {
		fmt.Fprintf(w, "and %d more, of which nothing is worse\n", n)
	}
	return nil
}
