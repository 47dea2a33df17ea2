package topology

import "fmt"

// groups returns the symmetric groups of choices on the way up to a rack, as Route.Groups. A
// group is the choices behind which the same components of the Quiver lie, each as often. So
// paths that are symmetric may be in several groups, but paths that are not are in none
// together, unless the next switch has them both and tells them apart itself.
func (r *routeBuilder) groups(list uplinks, pod, edge int) []int {
	if r.quiver == nil || len(list) < 2 {
		return nil
	}
	t := r.t
	src, ok := r.below()
	if !ok {
		return nil
	}
	dst := t.id(position{layer: LayerHost, pod: pod, sw: edge})
	set := t.Paths(src, dst)
	behind := make(map[int]string) // numbers of components
	for i, g := range r.quiver.Groups(src, dst) {
		for _, n := range g.Paths {
			switch group := set.group(n); {
			case r.at.layer == LayerEdge:
				behind[group] += fmt.Sprint(i, " ")
			case group == r.at.sw:
				behind[n%t.cores] += fmt.Sprint(i, " ")
			}
		}
	}
	numbers := make(map[string]int)
	groups := make([]int, len(list))
	for i, n := range list {
		number, ok := numbers[behind[n]]
		if !ok {
			number = len(numbers)
			numbers[behind[n]] = number
		}
		groups[i] = number
	}
	if len(numbers) < 2 {
		return nil
	}
	return groups
}

// below returns a host whose packets come up to the switch.
func (r *routeBuilder) below() (host NodeID, ok bool) {
	t, p := r.t, r.at
	if p.layer == LayerEdge {
		return t.id(position{layer: LayerHost, pod: p.pod, sw: p.sw}), true
	}
	for e := range t.edges {
		if t.Live(t.edgeLink(p.pod, e, p.sw)) {
			return t.id(position{layer: LayerHost, pod: p.pod, sw: e}), true
		}
	}
	return 0, false
}
