package live

// Layout says where the nodes of a Fabric are drawn.
type Layout struct {
	X    []float64 `json:"x"`    // of each node, 0 (left) to 1 (right)
	Slot float64   `json:"slot"` // from one host to the next
	Pods []Span    `json:"pods"` // boxes around the tiers below the highest one
}

// Span is a pod's box.
type Span struct {
	Left  float64 `json:"left"`
	Right float64 `json:"right"`
	Top   int     `json:"top"` // its highest tier
}

// Place puts the nodes of the lowest tier side by side with a gap between pods, the others
// evenly above those of their pod, and the highest tier evenly above all.
func (f *Fabric) Place() Layout {
	l := Layout{X: make([]float64, len(f.Nodes)), Pods: []Span{}}
	pods, _ := f.Pods()
	tiers := f.Tiers()
	n, lows := 0, 0
	for i, p := range pods {
		n = max(n, p+1)
		if f.Nodes[i].Tier == 0 {
			lows++
		}
	}
	members := make([][][]int, n+1) // by pod, the highest tier last; by tier
	for i := range members {
		members[i] = make([][]int, tiers)
	}
	for i, p := range pods {
		if p < 0 {
			p = n
		}
		members[p][f.Nodes[i].Tier] = append(members[p][f.Nodes[i].Tier], i)
	}
	slots := max(1, lows+n-1)
	l.Slot = 1 / float64(slots)
	left := 0.0
	for _, pod := range members[:n] {
		hosts, top := max(1, len(pod[0])), 0
		width := float64(hosts) * l.Slot
		for tier, nodes := range pod {
			spread(l.X, nodes, left, width)
			if len(nodes) > 0 {
				top = tier
			}
		}
		l.Pods = append(l.Pods, Span{left, left + width, top})
		left += width + l.Slot
	}
	for _, nodes := range members[n] {
		spread(l.X, nodes, 0, 1)
	}
	return l
}

func spread(x []float64, nodes []int, left, width float64) {
	for i, id := range nodes {
		x[id] = left + (float64(i)+0.5)/float64(len(nodes))*width
	}
}
