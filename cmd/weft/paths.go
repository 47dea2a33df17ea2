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
}

// step is one unit's path.
type step struct {
	Bounce string   `json:"bounce"` // empty: none is needed
	Hops   []string `json:"hops"`
	Links  []string `json:"links"`
}

func newPathsCmd() *cobra.Command {
	var f pathsFlags
	cmd := &cobra.Command{
		Use:   "paths --from HOST --to HOST",
		Short: "The paths of a pair of hosts, in the order in which a policy takes them",
		Long: `Paths prints one line per packet, flowcell, flowlet or flow, whatever the policy chooses
a path for: the bouncing switch, then every hop with its address.`,
		Example: "  weft paths --topology fat-tree:k=4 --policy drb --from 10.0.0.2 --to 10.3.1.3 -n 4",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
	flags.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (f pathsFlags) run(w io.Writer, counted bool) error {
	t, err := topology.Parse(f.topology)
	if err != nil {
		return err
	}
	p, err := policy.New(f.policy, policy.Options{})
	if err != nil {
		return err
	}
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
		return fmt.Errorf("--from and --to are both %s: name two hosts", from.Name)
	case counted && (f.n < 1 || f.n > maxSteps):
		return fmt.Errorf("-n %d: must be 1 to %d", f.n, maxSteps)
	case f.start < 0:
		return fmt.Errorf("--start %d: must be 0 or more", f.start)
	}
	steps, err := f.steps(t, p, from, to)
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(w, steps.list)
	}
	fmt.Fprintln(w, steps.title)
	for _, s := range steps.list {
		fmt.Fprintf(w, "%-6s %s\n", s.name(), s.hopList(t))
	}
	return nil
}

func lookupHost(t *topology.Topology, flag, name string) (topology.Node, error) {
	if name == "" {
		return topology.Node{}, fmt.Errorf("%s is missing: name a host by name or address, such as %s", flag, t.Node(0).Addr)
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		name = addr.Unmap().String()
	}
	n, err := t.Lookup(name)
	if err != nil {
		return n, fmt.Errorf("%s: %w", flag, err)
	}
	if n.Layer != topology.LayerHost {
		return n, fmt.Errorf("%s: %s is a switch (%s); name a host, such as %s", flag, name, n.Layer, t.Node(0).Name)
	}
	return n, nil
}

type listing struct {
	title string
	list  []step
}

func (f pathsFlags) steps(t *topology.Topology, p policy.Policy, from, to topology.Node) (listing, error) {
	set := t.Paths(from.ID, to.ID)
	if set.Direct() {
		edge := t.Ports(from.ID)[0].Peer
		s, err := newStep(t, from, to, edge)
		s.Bounce = ""
		return listing{fmt.Sprintf("%s to %s: direct, both are in the rack of %s; no bounce, no encapsulation",
			from.Name, to.Name, t.Node(edge).Name), []step{s}}, err
	}
	if len(set.Live) == 0 {
		return listing{}, fmt.Errorf("no live path from %s to %s", from.Name, to.Name)
	}
	n := f.n
	if n == 0 {
		n = len(set.Live)
	}
	title := fmt.Sprintf("%s: %s for every %s, %s to %s, %d paths", p.Name, p.Rule, p.Unit, from.Name, to.Name, len(set.Live))
	if p.Rule == drb.Random || p.Rule == drb.Hash {
		title += fmt.Sprintf("; the order is random, here from seed %d", f.seed)
	}
	selector := drb.NewSelector(p.Rule, p.Rule.Order(set.Bases, set.Live), f.seed)
	selector.StartAt(f.start)
	flows := rand.New(rand.NewPCG(f.seed, 0))
	list := make([]step, 0, n)
	for range n {
		path, ok := selector.Next(flows.Uint64())
		if !ok {
			return listing{}, errors.New("the policy chose no path")
		}
		s, err := newStep(t, from, to, set.Bounce(path))
		if err != nil {
			return listing{}, err
		}
		list = append(list, s)
	}
	return listing{title, list}, nil
}

func newStep(t *topology.Topology, from, to topology.Node, via topology.NodeID) (step, error) {
	path, err := t.Path(from.ID, to.ID, via)
	if err != nil {
		return step{}, err
	}
	s := step{Bounce: displayName(t, via)}
	for _, hop := range path.Hops {
		s.Hops = append(s.Hops, t.Node(hop).Name)
	}
	for _, l := range path.Links {
		link := t.Link(l)
		s.Links = append(s.Links, t.Node(link.A).Name+"-"+t.Node(link.B).Name)
	}
	return s, nil
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
		hops[i] = fmt.Sprintf("%s (%s)", name, n.Addr)
	}
	return strings.Join(hops, " > ")
}

// displayName is what a bouncing switch is called: a core by DRB's number.
func displayName(t *topology.Topology, id topology.NodeID) string {
	if r, ok := t.CoreNumber(id); ok {
		return fmt.Sprintf("3.%d", r)
	}
	return t.Node(id).Name
}
