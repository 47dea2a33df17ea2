package live

import (
	"fmt"
	"slices"
)

// MaxDrawn is the number of links up to which each is drawn: k=12 has 1,296. Above it they are
// drawn in bundles.
const MaxDrawn = 1500

// Bundling joins the nodes of a large Fabric by pod and tier, and the links between them.
type Bundling struct {
	// Fabric has a node for the nodes of a pod that are of one tier, and for the switches above
	// all pods that have the same neighbours' place; and a link for those that join two of these.
	Fabric *Fabric
	// Nodes and Links are the bundles that nodes and links of the large Fabric are in.
	Nodes []int
	Links []int
}

// Bundle joins what is too much to draw.
func Bundle(f *Fabric) *Bundling {
	b := &Bundling{Nodes: make([]int, len(f.Nodes)), Links: make([]int, len(f.Links))}
	small := &Fabric{Version: f.Version, Kind: f.Kind, Name: f.Name, About: f.About, CanFail: false, Bundles: true}
	pods, top := f.Pods()
	type group struct{ pod, tier, first int }
	groups := make(map[group]int)
	for i, n := range f.Nodes {
		g := group{pods[i], n.Tier, 0}
		if pods[i] < 0 {
			g.first = top[i]
		}
		at, ok := groups[g]
		if !ok {
			at = len(small.Nodes)
			groups[g] = at
			small.Nodes = append(small.Nodes, Node{Name: n.Name, Tier: n.Tier})
		}
		s := &small.Nodes[at]
		s.Members++
		s.Self = s.Self || n.Self
		b.Nodes[i] = at
	}
	for i := range small.Nodes {
		if n := &small.Nodes[i]; n.Members > 1 {
			n.Name = fmt.Sprintf("%s and %d more", n.Name, n.Members-1)
		}
	}
	links := make(map[[2]int]int)
	for i, l := range f.Links {
		ends := [2]int{b.Nodes[l.A], b.Nodes[l.B]}
		at, ok := links[ends]
		if !ok {
			at = len(small.Links)
			links[ends] = at
			small.Links = append(small.Links, Link{Name: l.Name, A: ends[0], B: ends[1]})
		}
		s := &small.Links[at]
		s.Members++
		s.Rate += l.Rate
		s.Room = max(s.Room, l.Room)
		b.Links[i] = at
	}
	for i := range small.Links {
		if l := &small.Links[i]; l.Members > 1 {
			l.Name = fmt.Sprintf("%s and %d more", l.Name, l.Members-1)
		}
	}
	b.Fabric = small
	return b
}

// Frame joins the links of a Frame of the large Fabric. Rates and drops are sums. Use, queue and
// loss are those of the worst member, as one full link in a hundred is what one looks for. The
// state is the worst of a member that works, or Broken where none does.
func (b *Bundling) Frame(f *Frame) *Frame {
	small := *f
	small.Links = make([]LinkFrame, len(b.Fabric.Links))
	for i, l := range f.Links {
		if i >= len(b.Links) {
			break
		}
		s := &small.Links[b.Links[i]]
		if l.State > Working {
			s.Bad++
		}
		s.State = max(s.State, l.State)
		s.Up.join(&l.Up)
		s.Down.join(&l.Down)
	}
	for i := range small.Links {
		s := &small.Links[i]
		if members := b.Fabric.Links[i].Members; s.State > Suspected && s.Bad < members {
			s.State = Suspected // some of it fails
		}
		s.Up.Rate, s.Down.Rate = round(s.Up.Rate), round(s.Down.Rate)
	}
	return &small
}

func (d *Flow) join(o *Flow) {
	d.Rate += o.Rate
	d.Drops += o.Drops
	d.Use, d.Queue, d.Loss = max(d.Use, o.Use), max(d.Queue, o.Queue), max(d.Loss, o.Loss)
}

// Pods returns for each node which pod it is of, in the order of the pods' first hosts: the part
// of the fabric that hangs together without its highest tier. It is -1 of nodes of the highest
// tier, for which top is the lowest neighbour's position: switches with the same one are a group.
// The pods of a leaf-spine are its leaves.
func (f *Fabric) Pods() (pods, top []int) {
	highest := f.Tiers() - 1
	pods, top = make([]int, len(f.Nodes)), make([]int, len(f.Nodes))
	peers := make([][]int, len(f.Nodes))
	for _, l := range f.Links {
		peers[l.A], peers[l.B] = append(peers[l.A], l.B), append(peers[l.B], l.A)
	}
	for i := range pods {
		pods[i], top[i] = -1, -1
		if f.Nodes[i].Tier == highest && len(peers[i]) > 0 {
			top[i] = slices.Min(peers[i])
		}
	}
	next := 0
	for i, n := range f.Nodes {
		if n.Tier == highest || pods[i] >= 0 {
			continue
		}
		members := []int{i}
		pods[i] = next
		for j := 0; j < len(members); j++ {
			for _, p := range peers[members[j]] {
				if pods[p] < 0 && f.Nodes[p].Tier < highest {
					pods[p] = next
					members = append(members, p)
				}
			}
		}
		next++
	}
	return pods, top
}
