package hostprog

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"weft/conga"
	"weft/drb"
	"weft/encap"
	"weft/flowcell"
	"weft/internal/paths"
	"weft/policy"
	"weft/topology"
)

// maxPaths bounds the order of paths to one rack; MAX_PATHS in bpf/spray.c. A
// three-level Clos of 64-port switches has as many cores.
const maxPaths = 1024

// sprayMode says how a TCP packet's step in the order is found. Values are those
// of the enum in bpf/spray.c.
type sprayMode uint32

const (
	sprayByNumber sprayMode = iota // the five-tuple's hash plus the IPv4 ID
	sprayByHash                    // the five-tuple's hash alone
	sprayRandom
	sprayDrawn    // with each flowcell: the one chosen, or any
	sprayFlowlets // with each flowlet: any
	sprayInformed // with each flowlet: by what hosts report
)

// choice is a policy in the program's terms.
type choice struct {
	mode  sprayMode
	shift uint32 // from an IPv4 ID to a step
}

// flowcellShift leaves of the ID the flowcell (flowcell.Number).
const flowcellShift = 6

// draws reports whether the program draws paths, and remembers them for each flow.
func (m sprayMode) draws() bool { return m >= sprayDrawn }

// choiceOf translates a policy, or says why the program cannot carry it out.
func choiceOf(p policy.Policy) (choice, error) {
	if lacks := p.UplinkLacks(); lacks != "" {
		return choice{}, fmt.Errorf("policy %s (%v, %v) is decided by the stack, packet by packet: it needs %s, which the spray program does not keep; choose one of %v", p.Name, p.Unit, p.How(), lacks, policy.NamesAtUplink())
	}
	c := choice{mode: sprayByNumber}
	cells := p.Unit.Kind == flowcell.UnitFlowcell
	if cells {
		c.shift = flowcellShift
	}
	switch {
	case p.Aware == policy.Informed:
		c.mode = sprayInformed
	case p.Unit.Kind == flowcell.UnitFlowlet:
		c.mode = sprayFlowlets
	case p.Rule == drb.Hash:
		c.mode = sprayByHash
	case p.Rule == drb.Random && cells:
		c.mode = sprayDrawn
	case p.Rule == drb.Random:
		c.mode = sprayRandom
	}
	return c, nil
}

// sprayGroup is the way to racks with the same live paths, in the order in which they are
// visited; none if the racks are cut off. The first four fields do not change.
type sprayGroup struct {
	choice
	order  []pathWord
	visits []int              // numbers of the paths, parallel to order
	ends   [conga.Tags]uint32 // of sprayInformed: behind the steps of each tag
	key    string
	number uint32 // in the program's tables; 0: not there
	racks  int    // that go by it there
}

// sprayRack is a prefix of a rack that a host may send to.
type sprayRack struct {
	prefix netip.Prefix // of the rack, or the address of a host that has ways of its own, or what is behind one
	of     netip.Prefix // of the rack
	edge   topology.NodeID
	words  *pathWords
	sids   [16]byte   // of an SRv6 destination what words are not, else 0
	host   netip.Addr // whose paths it has; the zero Addr: those of all of the rack
}

// racksOf lists the racks but the host's own, by their prefixes of the family of the host's
// address.
func racksOf(t *topology.Topology, self topology.NodeID, c encap.Carrier) ([]sprayRack, error) {
	racks, _, err := racksAndWords(t, self, c, false)
	return racks, err
}

// racksAndWords is racksOf and the book of their words.
func racksAndWords(t *topology.Topology, self topology.NodeID, c encap.Carrier, several bool) ([]sprayRack, *wordBook, error) {
	var racks []sprayRack
	six := t.Node(self).Addr.Is6()
	known := newWordBook(t, c, six, several)
	for edge := range t.Racks() {
		set := t.Paths(self, edge)
		if set.Direct() {
			continue
		}
		words, sids, err := wordsOf(set, known)
		if err != nil {
			return nil, nil, fmt.Errorf("paths of %s to %v: %w", t, t.RackOf(edge), err)
		}
		for _, prefix := range t.RackPrefixesOf(edge, six) {
			racks = append(racks, sprayRack{prefix: prefix, of: prefix, edge: edge, words: words, sids: sids})
		}
	}
	return racks, known, nil
}

// sprayGroups are the groups in use under one policy, by key.
type sprayGroups struct {
	self   topology.NodeID
	policy policy.Policy
	how    choice
	groups map[string]*sprayGroup
}

func newSprayGroups(self topology.NodeID, p policy.Policy) (*sprayGroups, error) {
	how, err := choiceOf(p)
	return &sprayGroups{self, p, how, make(map[string]*sprayGroup)}, err
}

// to returns the way to a rack over a topology. Ways of different epochs are
// different groups.
func (s *sprayGroups) to(rack sprayRack, t *topology.Topology, epoch uint32) (*sprayGroup, error) {
	set := t.PathsOrAll(s.self, rack.edge)
	if rack.host.IsValid() {
		set = t.PathsTo(s.self, rack.host).OrAll()
	}
	// Most racks have the same live paths, and an order is not cheap.
	key := groupKey(rack.words, set, epoch)
	if g := s.groups[key]; g != nil {
		return g, nil
	}
	g := &sprayGroup{choice: s.how, key: key}
	list := set.Weighted()
	if len(list) > maxPaths {
		list = set.Live // all alike: the weights are of too many digits
	}
	g.visits = set.Ordered(s.policy.Rule.Order, list)
	if g.mode == sprayInformed {
		g.ends = sortByTag(set, g.visits)
	}
	for _, n := range g.visits {
		g.order = append(g.order, rack.words.words[n])
	}
	if len(g.order) > maxPaths {
		return nil, fmt.Errorf("%s: %d paths to %s, the spray program takes at most %d; use the embedded stack or a smaller fabric", t, len(g.order), rack.prefix, maxPaths)
	}
	s.groups[key] = g
	return g, nil
}

// groupKey is equal for equal sets of live paths with equal weights in one epoch.
func groupKey(words *pathWords, s topology.PathSet, epoch uint32) string {
	key := binary.BigEndian.AppendUint32(nil, words.number)
	key = binary.BigEndian.AppendUint32(key, epoch)
	return string(paths.AppendKey(key, s, nil))
}

// sortByTag sorts paths by their tags, and those of a tag by their numbers, so that a path
// that weighs more than one follows itself. It returns where each tag's end.
func sortByTag(set topology.PathSet, visits []int) (ends [conga.Tags]uint32) {
	slices.SortFunc(visits, func(a, b int) int {
		return cmp.Or(cmp.Compare(paths.Tag(set, a), paths.Tag(set, b)), cmp.Compare(a, b))
	})
	for _, n := range visits {
		for tag := paths.Tag(set, n); tag < conga.Tags; tag++ {
			ends[tag]++
		}
	}
	return ends
}
