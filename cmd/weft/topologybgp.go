package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/discover"
	"weft/topology/graph"
	"weft/topoupdate/bgp"
	"weft/topoupdate/bgp/session"
)

func newTopologyFromBGPCmd() *cobra.Command {
	var neighbors []string
	var as uint32
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "from-bgp --as AS --neighbor ADDRESS=AS",
		Short: "Make a graph of the routes that this host's switches announce",
		Long: `From-bgp asks the switches that this host is wired to for their routes, and makes a graph
of the AS paths. It announces nothing. Each switch needs an AS of its own (RFC 7938), must
announce an address of its own (a /32 or /128), and must send all paths (add-path). In FRR:
  neighbor HOST addpath-tx-all-paths`,
		Example: "  weft topology from-bgp --as 4200000001 --neighbor 192.168.1.1=65101",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case as == 0:
				return usagef("--as is missing: give this host's own number, under which its switches know it, such as 4200000001")
			case len(neighbors) == 0:
				return usagef("--neighbor is missing: name a switch that this host is wired to, such as 192.168.1.1=65101")
			case wait <= 0:
				return usagef("--wait=%v: must be more than 0s", wait)
			}
			c := session.Config{AS: as}
			for _, text := range neighbors {
				n, err := session.ParseNeighbor(text)
				if err != nil {
					return usagef("--neighbor %q: %w", text, err)
				}
				c.Neighbors = append(c.Neighbors, n)
			}
			self, err := thisHost()
			if err != nil {
				return err
			}
			for _, a := range self.Addresses {
				if a.Is4() && !c.RouterID.IsValid() {
					c.RouterID = a
				}
			}
			found, err := hearBGP(cmd.Context(), c, self, wait)
			if err != nil {
				return err
			}
			g, err := graph.New(found.Spec)
			if err != nil {
				return err
			}
			return printGraph(cmd.OutOrStdout(), g, found.Guesses)
		},
	}
	cmd.Flags().Uint32Var(&as, "as", 0, "this host's own AS number (required)")
	cmd.Flags().StringArrayVar(&neighbors, "neighbor", nil, "a switch: its address and AS, such as 192.168.1.1=65101 (required; may be repeated)")
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Second, "how long to wait for all routes")
	return cmd
}

// thisHost returns what this host knows of itself.
func thisHost() (h bgp.Host, err error) {
	name, err := os.Hostname()
	if err != nil {
		return h, err
	}
	return session.ThisHost(name)
}

// hearBGP waits until the neighbours have sent all that they have, or for so long, and
// returns the graph of it.
func hearBGP(ctx context.Context, c session.Config, self bgp.Host, wait time.Duration) (f discover.Found, err error) {
	changed := make(chan struct{}, 1)
	c.Changed = func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	s, err := session.Open(c)
	if err != nil {
		return f, err
	}
	defer s.Close()
	timeout := time.After(wait)
	for {
		missing, silent := s.Missing()
		if len(missing) == 0 {
			break
		}
		select {
		case <-changed:
			continue
		case <-ctx.Done():
			return f, ctx.Err()
		case <-timeout:
		}
		if len(silent) > 0 {
			return f, fmt.Errorf("no BGP session with %v after %v; does the switch know this host as a neighbor of AS %d?", silent, wait, c.AS)
		}
		f.Guesses = append(f.Guesses, fmt.Sprintf("that there is no more: not all routes had come after %v", wait))
		break
	}
	var guesses []string
	f.Spec, guesses = s.Spec(self)
	f.Guesses = append(f.Guesses, guesses...)
	if len(f.Spec.Nodes) < 2 {
		return f, errors.New("the neighbors announce no routes; in FRR, network, redistribute and no bgp ebgp-requires-policy say what is announced")
	}
	return f, nil
}
