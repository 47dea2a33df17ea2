package drb

// figure6a is the goodput of the paper's Fig. 6a, by its names of policies: Mbit/s of a host.
var figure6a = map[string]float64{"ECMP": 396, "RRB": 725, "RB": 803, "DRB": 895}

// Published is what the paper has of a permutation in a fat-tree, by weft's names of policies.
type Published struct {
	Source   string             // where the paper has it
	Setting  string             // of the paper's run
	LinkMbit float64            // rate of all links
	Mbit     map[string]float64 // goodput of a host, the mean of all
}

// Figure6a is the paper's, to be shown beside other runs.
func Figure6a() Published {
	p := Published{Source: "DRB §5.1, Fig. 6a", Setting: "a simulated fat-tree of 3,456 hosts (k=24) with links of 1 Gbit/s, every host sending to one and receiving from one", LinkMbit: 1000, Mbit: make(map[string]float64)}
	for policy, label := range labels {
		p.Mbit[policy] = figure6a[label]
	}
	return p
}
