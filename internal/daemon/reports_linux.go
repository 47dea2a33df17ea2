package daemon

import (
	"net/netip"

	"weft/conga"
	"weft/internal/hostprog"
	"weft/internal/paths"
	"weft/stack"
	"weft/topology"
)

// reporter is a program at the uplink that takes hosts' reports of congestion.
type reporter interface {
	Reports(func(host netip.Addr, tags *[conga.Tags]hostprog.TagLoad)) error
}

// reportsOf says what the program knows by CONGA. It has no counts of choices: flowlets are
// counted by bouncing switch.
func reportsOf(t *topology.Topology, self topology.NodeID, o reporter) (all []stack.Congestion) {
	err := o.Reports(func(host netip.Addr, tags *[conga.Tags]hostprog.TagLoad) {
		edge, ok := t.RackAt(host)
		if !ok {
			return
		}
		c := stack.Congestion{Rack: t.Node(edge).Name, Host: t.HostName(host), Prefix: t.RackOf(edge)}
		set := t.PathsTo(self, host).OrAll()
		by := make(map[uint8][]int)
		for n := range set.Count() {
			tag := paths.Tag(set, n)
			by[tag] = append(by[tag], n)
		}
		for i, l := range tags {
			if on := by[uint8(i)]; len(on) > 0 {
				c.Tags = append(c.Tags, stack.TagCongestion{Tag: uint8(i), Paths: on, Local: l.Local, Remote: l.Remote, Known: l.Known, Age: l.Age})
			}
		}
		all = append(all, c)
	})
	if err != nil {
		return nil // it is closed, or the kernel is short of something: the next status says more
	}
	return all
}
