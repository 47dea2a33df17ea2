package switchconf

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"

	"weft/internal/discover"
	"weft/topology/graph"
)

// Images of containers.
const (
	switchImage = "quay.io/frrouting/frr:8.4.4"
	hostImage   = "ghcr.io/srl-labs/network-multitool"
)

// ContainerlabOptions are what a containerlab file has besides its graph.
type ContainerlabOptions struct {
	Name string // of the lab
	Dir  string // of the other files, as the containerlab file calls it

	// Exec returns the commands that a node runs when it starts; nil: none.
	Exec func(graph.NodeID) []string

	Options
}

// daemons is FRR's list of daemons to run.
const daemons = `bgpd=yes
bfdd=%s
vtysh_enable=yes
zebra_options="  -A 127.0.0.1 -s 90000000"
bgpd_options="   -A 127.0.0.1"
bfdd_options="   -A 127.0.0.1"
`

// Containerlab returns a containerlab file of Linux nodes, FRR at the switches, of which
// discover.Containerlab makes the same graph, and the files that it needs, by their names
// in Dir. Links need names of their ports at both ends, and switches an AS.
func Containerlab(g *graph.Graph, opts ContainerlabOptions) (file []byte, others map[string]string, err error) {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	bfd := "no"
	if opts.BFD {
		bfd = "yes"
	}
	others = map[string]string{"daemons": fmt.Sprintf(daemons, bfd)}
	line("name: %s", strconv.Quote(opts.Name))
	line("topology:")
	line("  nodes:")
	for i := range g.NumNodes() {
		id := graph.NodeID(i)
		n := g.Node(id)
		line("    %s:", strconv.Quote(n.Name))
		line("      kind: linux")
		if n.Tier == 0 {
			line("      image: %s", hostImage)
		} else {
			conf, err := FRR(g, id, opts.Options)
			if err != nil {
				return nil, nil, err
			}
			name := n.Name + ".conf"
			others[name] = conf
			line("      image: %s", switchImage)
			line("      binds:")
			line("        - %s", strconv.Quote(path.Join(opts.Dir, name)+":/etc/frr/frr.conf"))
			line("        - %s", strconv.Quote(path.Join(opts.Dir, "daemons")+":/etc/frr/daemons"))
		}
		line("      labels:")
		label := func(name, value string) { line("        %s: %s", name, strconv.Quote(value)) }
		label(discover.TierLabel, strconv.Itoa(n.Tier))
		if n.AS > 0 {
			label(discover.ASLabel, strconv.FormatUint(uint64(n.AS), 10))
		}
		label(discover.AddressLabel, joined(n.Addresses)) // the empty one says that there is none to guess
		if n.Tier < 2 {
			label(discover.PrefixesLabel, joined(n.Prefixes))
		}
		if !n.SIDs.None() {
			label(discover.SIDsLabel, joined(n.SIDs.List()))
		}
		if opts.Exec == nil {
			continue
		}
		for i, command := range opts.Exec(id) {
			if i == 0 {
				line("      exec:")
			}
			line("        - %s", strconv.Quote(command))
		}
	}
	if g.NumLinks() > 0 {
		line("  links:")
	}
	for i := range g.NumLinks() {
		l := g.Link(graph.LinkID(i))
		for end, port := range l.Ports {
			if port == "" {
				return nil, nil, fmt.Errorf("the port of %s to %s has no name; give both ends of that link one, ports: [swp1, swp7]", l.Ends[end], l.Ends[1-end])
			}
		}
		line("    - endpoints: [%s, %s]", strconv.Quote(l.Ends[0]+":"+l.Ports[0]), strconv.Quote(l.Ends[1]+":"+l.Ports[1]))
		if l.Rate > 0 {
			line("      labels: {%s: %s}", discover.RateLabel, strconv.Quote(strconv.FormatFloat(l.Rate, 'f', -1, 64)))
		}
	}
	return b.Bytes(), others, nil
}

func joined[T fmt.Stringer](list []T) string {
	var words []string
	for _, v := range list {
		words = append(words, v.String())
	}
	return strings.Join(words, ",")
}
