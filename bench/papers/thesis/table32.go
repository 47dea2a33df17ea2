package thesis

import (
	"context"
	"fmt"

	"weft/bench/papers"
	"weft/hedera"
)

// What the thesis' scheduler keeps, in bytes.
const (
	linkStateBytes = 1   // of each direction of a link between switches
	flowStateBytes = 200 // of each flow
)

// table32Rows have KB, as the thesis gives them.
var table32Rows = []struct {
	k           int
	links, flow float64
}{
	{4, .064, 4}, {16, 4, 205}, {24, 14, 691}, {32, 33, 1640}, {48, 111, 5530},
}

func table32() papers.Experiment {
	return papers.Experiment{
		Name: "thesis-t3.2", Source: "thesis §3.5.3, Table 3.2",
		Title: "what the flow scheduler keeps in memory: counted; its times left out",
		Setting: []papers.Parameter{
			stated("fabrics", "fat-trees of 16 to 27,648 hosts"),
			stated("requests", "one of each host, to place its flow"),
			stated("links", "4 k (k/2)² directions, an array (§3.5.1); here counted in the fabric"),
			chosen("link state", "a byte for each direction of a link between switches", "the thesis' array is binary; that an entry takes a byte is fitted to the table, which has k³ bytes, so these rows do not score"),
			chosen("flow state", "200 bytes a flow", "not stated; fitted to the four larger fabrics, so only that of 16 hosts scores"),
			chosen("times", "not compared: 51 to 754 µs a request", "they are of a PC with 2.33 GHz; instead, how many paths a request looks at"),
		},
		Mutants: []papers.Mutant{
			{Name: "links are counted in one direction", About: []string{"link state"}, Replace: map[string]string{"link state": ""}},
			{Name: "flows are kept for each edge switch, not for each host", About: []string{"flow state"}, Replace: map[string]string{"flow state": ""}},
		},
		Decisions: []papers.Decision{{
			// The scheduler is an element of Click (§3.4), whose sources have these figures
			// (include/click/hashmap.hh and .cc of 2001 to 2008): 127 buckets at first, each a
			// pointer, and the next 2n+1 for twice as many entries. They have besides that elements
			// come from an arena of 127, 25 KB at once, which no row of 4 KB has room for. Buckets
			// without it are a fit.
			Parameter: "memory of the table of flows besides its entries", About: []string{"flow state"},
			Values: []papers.DecisionValue{
				{Name: "Click's buckets, pointers of 4 bytes", Replace: map[string]string{"memory": "4"}, Fitted: true},
				{Name: "pages of 4 KB", Replace: map[string]string{"pages": "4096"}, Fitted: true},
				{Name: "Click's buckets, pointers of 8 bytes", Replace: map[string]string{"memory": "8"}, Fitted: true},
			},
		}},
		Run: runTable32,
	}
}

func runTable32(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	sizes := table32Rows
	out := &papers.Outcome{}
	if o.Quick {
		sizes = sizes[:2]
		out.Settings = append(out.Settings, chosen("fabric", "up to 1,024 hosts", "quick"))
	}
	counts := make([]schedulerState, len(sizes))
	err := papers.Each(ctx, o, len(sizes), func(i int) (err error) {
		counts[i], err = stateOf(sizes[i].k, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, size := range sizes {
		label := fmt.Sprintf("%d hosts", fatTreeHosts(size.k))
		c := counts[i]
		flows := papers.Within(label+", flow state", "KB", size.flow, float64(c.flows)/1e3, tolerance)
		if i > 0 {
			flows = flows.Fitted()
		}
		out.Rows = append(out.Rows,
			papers.Within(label+", link state", "KB", size.links, float64(c.links)/1e3, tolerance).Fitted(), flows,
			papers.Info(label+", a request", "paths looked at", c.looked))
	}
	explain(out, o, "16 hosts: 200 bytes a flow, which are fitted to the larger fabrics, are 3.2 KB; the thesis has 4. The scheduler is an element of Click, whose hash table begins with 127 buckets: with pointers of 4 or 8 bytes these would be the rest, but its elements come from an arena of 127, 25 KB at once, so that is a fit")
	return out, nil
}

// buckets are those of Click's HashMap with so many entries.
func buckets(entries int) int {
	n := 127
	for entries > 2*n {
		n = 2*n + 1
	}
	return n
}

// schedulerState is what a scheduler of one request a host keeps, in bytes, and how many
// paths a request has looked at.
type schedulerState struct {
	links, flows int
	looked       float64
}

func stateOf(k int, o papers.Options) (c schedulerState, err error) {
	t, f, err := fabricOf(fatTree(k))
	if err != nil {
		return c, err
	}
	directions := 2 * (t.NumLinks() - t.NumHosts())
	if o.As("link state") == "" {
		directions /= 2
	}
	c.links = directions * linkStateBytes
	flows := t.NumHosts()
	if o.As("flow state") == "" {
		flows /= k / 2
	}
	c.flows = flows * flowStateBytes
	c.flows += buckets(flows) * int(valueOf(o, "memory", 0))
	page := int(valueOf(o, "pages", 1))
	c.flows = (c.flows + page - 1) / page * page
	to, err := randomBijection.make(t, o.Seed)
	if err != nil {
		return c, err
	}
	all := pairs(to)
	fit := hedera.NewFirstFit(f)
	for _, p := range all {
		path, ok := fit.Place(p, 1)
		if !ok { // has looked at all
			path = f.Paths(p.Src, p.Dst) - 1
		}
		c.looked += float64(path+1) / float64(len(all))
	}
	return c, nil
}
