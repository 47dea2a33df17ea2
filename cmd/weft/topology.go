package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"weft/internal/config"
	"weft/internal/discover"
	"weft/topology/graph"
)

func newTopologyCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topology",
		Short: "What is known of a fabric's switches, hosts and cables, as a graph",
		Long: `Topology prints a fabric as a graph in YAML. Comments at the beginning say how large it
is, by how many paths its racks reach each other, and what had to be guessed. weft plan,
weft paths, weft host and weft lab up take graphs.`,
	}
	cmd.AddCommand(
		topologyFrom("from-yaml", "Check a graph, and print it in its usual form",
			func(text []byte) (discover.Found, error) {
				s, err := graph.ParseSpec(text)
				return discover.Found{Spec: s}, err
			}),
		topologyFrom("from-containerlab", "Make a graph of a containerlab topology file", discover.Containerlab),
		newTopologyFromLLDPCmd(), newTopologyFromBGPCmd())
	return cmd
}

// maxInput bounds a file that a command reads, in bytes: a line for every link of a large fabric.
const maxInput = 8 << 20

func topologyFrom(name, short string, read func([]byte) (discover.Found, error)) *cobra.Command {
	return &cobra.Command{
		Use:     name + " FILE",
		Short:   short,
		Example: "  weft topology " + name + " fabric.yaml > graph.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := config.ReadInput(args[0], maxInput)
			if err != nil {
				return err
			}
			found, err := read(text)
			if err != nil {
				return config.InFile(args[0], text, err)
			}
			g, err := graph.New(found.Spec)
			if err != nil {
				return config.InFile(args[0], text, err)
			}
			return printGraph(cmd.OutOrStdout(), g, found.Guesses)
		},
	}
}

// printGraph writes a graph, and before it, as comments, its size and what was guessed.
func printGraph(w io.Writer, g *graph.Graph, guesses []string) error {
	summarise(w, g)
	for _, line := range guesses {
		fmt.Fprintf(w, "# guessed: %s\n", line)
	}
	_, err := w.Write(g.Text())
	return err
}

// maxCut bounds how many pairs of racks without a path are named.
const maxCut = 5

// summarise says how large a fabric is and by how many paths its racks reach each other.
func summarise(w io.Writer, g *graph.Graph) {
	first, end := g.Tier(1)
	sizes := []string{fmt.Sprintf("%d hosts", g.NumHosts())}
	for tier := 1; tier <= graph.MaxTier; tier++ {
		if a, b := g.Tier(tier); b > a {
			sizes = append(sizes, fmt.Sprintf("%d switches of tier %d", b-a, tier))
		}
	}
	fmt.Fprintf(w, "# %s, %d links\n", strings.Join(sizes, ", "), g.NumLinks())
	least, most, cut := 0, 0, 0
	for a := first; a < end; a++ {
		for b := first; b < end; b++ {
			n := len(g.Paths(a, b).List)
			switch {
			case a == b:
				continue
			case n == 0:
				if cut++; cut <= maxCut {
					fmt.Fprintf(w, "# no path from %s to %s\n", g.Node(a).Name, g.Node(b).Name)
				}
				continue
			case least == 0 || n < least:
				least = n
			}
			most = max(most, n)
		}
	}
	if cut > maxCut {
		fmt.Fprintf(w, "# and so on: %d pairs of racks have no path\n", cut)
	}
	if most > 0 {
		fmt.Fprintf(w, "# paths between racks: %d to %d\n", least, most)
	}
}
