package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"weft/drb"
	"weft/encap"
	"weft/internal/config"
	"weft/policy"
	"weft/topology"
)

// maxSteps bounds -n: 64 times around the largest fat-tree's paths.
const maxSteps = 1 << 16

type pathsFlags struct {
	topology, policy string
	from, to         string
	n, start         int
	seed             uint64
	json             bool
	encap            string
}

// step is one unit's path.
type step struct {
	Bounce string `json:"bounce"` // empty: none is needed
	// Address is the outer destination: that of the bouncing switch, in a VL2 fabric that
	// of the virtual spine, the one that holds SRv6's labels or, in a graph, that of a SID.
	// MPLS has none.
	Address string `json:"address,omitempty"`
	// Labels are the output ports at all switches but the last, if the encapsulation has
	// labels.
	Labels []int    `json:"labels,omitempty"`
	Hops   []string `json:"hops"`
	// Uplink is the device that the path begins with, where the host has several and the graph
	// names them.
	Uplink string   `json:"uplink,omitempty"`
	Links  []string `json:"links"`
	// Ways are, in a graph, the ways up to the bouncing switch and those down from it,
	// among which the switches' own ECMP decides. They are nil if there is one of each.
	Ways []int `json:"ways,omitempty"`
	// Group is the number of the path's symmetric group, from 1. It is 0 if there is only
	// one group.
	Group int `json:"group,omitempty"`
}

func newPathsCmd() *cobra.Command {
	var f pathsFlags
	var live liveFlags
	cmd := &cobra.Command{
		Use:   "paths --from HOST --to HOST | --live [--to ADDRESS]",
		Short: "The paths of a pair of hosts, in the order in which a policy takes them",
		Long: `Paths prints one line per packet, flowcell, flowlet or flow, whatever the policy chooses
a path for: the bouncing switch, then every hop with its address. In a VL2 fabric a
bouncing switch is a virtual spine. Where links are down or differ in rate, the paths
may weigh differently, and fall into groups of those that are symmetric. Policies that
go by congestion are shown as they begin, at random: what they come to know is a running
host's (--live).

The topology may be a graph (weft topology). A path is then a bouncing switch; how many
ways lead up to it and down from it is said, as the switches' own ECMP decides on these. With
--encap srv6 its address is the SID at which that switch takes an IPv4 packet out.

With --encap srv6 or mpls a path is the output port at each switch, and what carries
them comes between: the IPv6 destination, or the stack of MPLS labels.

With --live it prints what the weft host of this machine knows of its paths, rack by
rack: how congested each was found, how long ago, and how often it was chosen.`,
		Example: "  weft paths --topology fat-tree:k=4 --policy drb --from 10.0.0.2 --to 10.3.1.3 -n 4\n" +
			"  weft paths --topology fabric.yaml --from h0.0.2 --to h3.1.3\n" +
			"  weft paths --from h0.0.2 --to h3.1.3 --encap srv6\n" +
			"  weft paths --live --to 10.3.1.3 --interval 1s",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if live.live {
				live.to, live.json = f.to, f.json
				return live.run(cmd.Context(), cmd.OutOrStdout())
			}
			return f.run(cmd.OutOrStdout(), cmd.Flags().Changed("n"))
		},
	}
	topologyFlag(cmd, &f.topology)
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", policy.Default, "one of "+strings.Join(policy.Names(), ", "))
	flags.StringVar(&f.from, "from", "", "the sending host, by name or address (required)")
	flags.StringVar(&f.to, "to", "", "the receiving host (required)")
	flags.IntVarP(&f.n, "n", "n", 0, "how many choices to show (default: as many as there are paths)")
	flags.IntVar(&f.start, "start", 0, "the step of the order to start at; senders start at a random one")
	flags.Uint64Var(&f.seed, "seed", 1, "for policies that choose at random or by hash")
	flags.StringVar(&f.encap, "encap", encap.CarrierIPIP.String(), "what carries the path: ipip, srv6 or mpls")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	flags.BoolVar(&live.live, "live", false, "print what the weft host of this machine knows of its paths")
	flags.StringVar(&live.socket, "socket", "", "with --live, the daemon's `socket` (default that of this network namespace)")
	flags.DurationVar(&live.interval, "interval", 0, "with --live, print again after this time, until interrupted (default once)")
	for _, name := range []string{"topology", "policy", "from", "n", "start", "seed", "encap"} {
		cmd.MarkFlagsMutuallyExclusive("live", name)
	}
	return cmd
}

func (f pathsFlags) run(w io.Writer, counted bool) error {
	t, g, err := config.Fabric(f.topology)
	if err != nil {
		return err
	}
	p, err := policy.New(f.policy, policy.Options{})
	if err != nil {
		return usagef("--policy: %w", err)
	}
	if g != nil {
		return f.runGraph(w, g, p)
	}
	p = p.At(policy.Options{}.Rate(t.Slowest()))
	from, err := lookupHost(t, "--from", f.from)
	if err != nil {
		return err
	}
	to, err := lookupHost(t, "--to", f.to)
	if err != nil {
		return err
	}
	switch {
	case from.ID == to.ID:
		return usagef("--from and --to are both %s: name two hosts", from.Name)
	case counted && (f.n < 1 || f.n > maxSteps):
		return usagef("-n %d: must be 1 to %d", f.n, maxSteps)
	case f.start < 0:
		return usagef("--start %d: must be 0 or more", f.start)
	}
	carrier, err := encap.ParseCarrier(f.encap)
	if err != nil {
		return usagef("--encap: %w", err)
	}
	steps, err := f.steps(t, p, carrier, from, to)
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(w, steps.list)
	}
	fmt.Fprintln(w, steps.title)
	for _, s := range steps.list {
		fmt.Fprintf(w, "%-6s %s%s\n", s.name(), s.stack(carrier), s.hopList(t))
	}
	for _, line := range steps.notes {
		fmt.Fprintln(w, line)
	}
	return nil
}

func lookupHost(t *topology.Topology, flag, name string) (topology.Node, error) {
	if name == "" {
		return topology.Node{}, usagef("%s is missing: name a host by name or address, such as %s", flag, t.Node(0).Addr)
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		name = addr.Unmap().String()
	}
	n, err := t.Lookup(name)
	if err != nil {
		return n, usagef("%s: %w", flag, err)
	}
	if n.Layer != topology.LayerHost {
		return n, usagef("%s: %s is a switch (%s); name a host, such as %s", flag, name, n.Layer, t.Node(0).Name)
	}
	return n, nil
}

type listing struct {
	title string
	list  []step
	notes []string // weights and groups, where there are several
}

func (f pathsFlags) steps(t *topology.Topology, p policy.Policy, carrier encap.Carrier, from, to topology.Node) (listing, error) {
	set := t.Paths(from.ID, to.ID)
	if set.Direct() {
		edge := t.EdgeOf(from.ID)
		path, err := t.Path(from.ID, to.ID, edge)
		return listing{title: fmt.Sprintf("%s to %s: direct, both are in the rack of %s; no bounce, no encapsulation",
			from.Name, to.Name, t.Node(edge).Name), list: []step{newStep(t, path)}}, err
	}
	if carrier == encap.CarrierSRv6 {
		if err := t.CheckPorts(encap.MaxSIDPort + 1); err != nil {
			return listing{}, err
		}
	}
	if len(set.Live) == 0 {
		return listing{}, fmt.Errorf("no live path from %s to %s", from.Name, to.Name)
	}
	weighted := set.Weighted()
	n := f.n
	if n == 0 {
		n = len(weighted)
	}
	title := fmt.Sprintf("%s: %s for every %s, %s to %s, %d paths", p.Name, p.How(), p.Unit, from.Name, to.Name, len(set.Live))
	switch {
	case p.Aware != policy.Oblivious:
		title += fmt.Sprintf("; congestion decides, and until it is known %s, here from seed %d", p.Rule, f.seed)
	case p.Rule == drb.Random || p.Rule == drb.Hash:
		title += fmt.Sprintf("; the order is random, here from seed %d", f.seed)
	}
	notes, groupOf := groupNotes(set, t.Groups(from.ID, to.ID))
	selector := drb.NewSelector(p.Rule, set.Ordered(p.Rule.Order, weighted), f.seed)
	selector.StartAt(f.start)
	flows := rand.New(rand.NewPCG(f.seed, 0))
	list := make([]step, 0, n)
	for range n {
		path, ok := selector.Next(flows.Uint64())
		if !ok {
			return listing{}, errors.New("the policy chose no path")
		}
		s := newStep(t, set.Path(path))
		s.Bounce, s.Address, s.Group = set.Name(path), set.Addr(path).String(), groupOf[path]
		if err := s.label(carrier, set.Choices(path)); err != nil {
			return listing{}, err
		}
		list = append(list, s)
	}
	return listing{title, list, notes}, nil
}

// groupNotes describes the weights and groups of a pair's paths where there are several,
// and numbers each path's group from 1.
func groupNotes(set topology.PathSet, groups []topology.Group) (notes []string, groupOf map[int]int) {
	if set.Weights != nil {
		list := make([]string, len(set.Live))
		for i, n := range set.Live {
			list[i] = fmt.Sprintf("%s=%d", set.Name(n), set.Weights[i])
		}
		notes = append(notes, "weights: "+strings.Join(list, " "))
	}
	groupOf = make(map[int]int)
	if len(groups) < 2 {
		return notes, groupOf
	}
	for i, g := range groups {
		list := make([]string, len(g.Paths))
		for j, n := range g.Paths {
			list[j] = set.Name(n)
			groupOf[n] = i + 1
		}
		notes = append(notes, fmt.Sprintf("group %d, weight %d: %s", i+1, g.Weight, strings.Join(list, " ")))
	}
	return notes, groupOf
}

func newStep(t *topology.Topology, path topology.Path) (s step) {
	for _, hop := range path.Hops {
		s.Hops = append(s.Hops, t.Node(hop).Name)
	}
	for _, l := range path.Links {
		s.Links = append(s.Links, t.LinkName(l))
	}
	return s
}

func (s step) name() string {
	if s.Bounce == "" {
		return "direct"
	}
	return s.Bounce
}

func (s step) hopList(t *topology.Topology) string {
	hops := make([]string, len(s.Hops))
	for i, name := range s.Hops {
		n, _ := t.Lookup(name)
		addr := n.Addr.String()
		if s.Address != "" && s.Labels == nil && i == len(hops)/2 {
			addr = s.Address
		}
		hops[i] = fmt.Sprintf("%s (%s)", name, addr)
	}
	return strings.Join(hops, " > ")
}
