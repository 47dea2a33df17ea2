package spray

import (
	"weft/drb"
	"weft/flowcell"
	"weft/internal/paths"
	"weft/topology"
)

// pair is the state of a host towards another: DRB keeps one selector for data and
// one for pure ACKs (DRB §5). It fills three cache lines, of which a packet of data needs the
// first and an acknowledgement the first two, unless paths are random.
type pair struct {
	valid    uint32 // the topology of which the pair has taken note
	bound    uint32 // how often its paths have changed
	count    flowcell.Number
	reported bool         // the latest packet with a mark reported congestion
	divided  bool         // there are further selectors
	paths    *paths.Group // nil: none needed, or free
	selectors
	further  []selectors // of the further components
	src, dst topology.NodeID
	flows    int32 // that use it, by either end
	_        [20]byte
}

// selectors are those of one component of a pair's paths.
type selectors struct{ data, ack drb.Selector }

func (p *pair) of(hash uint64) *selectors {
	if !p.divided {
		return &p.selectors
	}
	if i := p.paths.Component(hash); i > 0 {
		return &p.further[i-1]
	}
	return &p.selectors
}

// counted is the number of the next packet where units have none: with it the
// receiver can tell what is late from what was sent again.
func (p *pair) counted() flowcell.Number {
	p.count = p.count.Count()
	return p.count
}

type pairKey struct{ src, dst topology.NodeID }

// maxIdle is how many pairs without flows are remembered: with the next flow such a
// one goes on where it was. Others begin anew, as those do that a real host has
// forgotten.
const maxIdle = 1 << 15

// pairTable has the pairs.
type pairTable struct {
	index map[pairKey]int32
	list  []pair
	free  []int32
	idle  int
	hand  int // where the search for an idle one goes on
}

func newPairTable() pairTable { return pairTable{index: make(map[pairKey]int32)} }

// use finds or makes a pair for a flow; added: it is new and has no paths.
func (t *pairTable) use(src, dst topology.NodeID) (i int32, added bool) {
	i, ok := t.index[pairKey{src, dst}]
	if ok {
		p := &t.list[i]
		if p.flows == 0 {
			t.idle--
		}
		p.flows++
		return i, false
	}
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = int32(len(t.list))
		t.list = append(t.list, pair{})
	}
	t.list[i] = pair{src: src, dst: dst, flows: 1}
	t.index[pairKey{src, dst}] = i
	return i, true
}

// leave ends a flow's use of a pair.
func (t *pairTable) leave(i int32) {
	if t.list[i].flows--; t.list[i].flows > 0 {
		return
	}
	if t.idle++; t.idle > maxIdle {
		t.evict()
	}
}

// evict forgets an idle pair. That more than maxIdle are idle bounds what the search
// takes, unless nearly all are in use.
func (t *pairTable) evict() {
	for {
		t.hand = (t.hand + 1) % len(t.list)
		p := &t.list[t.hand]
		if i, ok := t.index[pairKey{p.src, p.dst}]; p.flows == 0 && ok && int(i) == t.hand {
			delete(t.index, pairKey{p.src, p.dst})
			*p = pair{}
			t.free = append(t.free, i)
			t.idle--
			return
		}
	}
}
