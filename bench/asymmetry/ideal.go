package asymmetry

import (
	"cmp"
	"math"

	"weft/topology"
)

// limit is the most that some of the streams can get together.
type limit struct {
	streams []int
	mbit    float64
}

// ideal is the max-min fair rate of each stream in Mbit/s over all choices of paths: the
// best that any policy can reach. Links have rateMbit where the topology gives no rate.
//
// All streams go from some racks to one. So the maximum flow from each set of sending
// racks limits them, and otherwise only the hosts' own links do. All streams grow at the
// same speed; those that meet a full limit stop (Bertsekas and Gallager, Data Networks,
// §6.5.2).
func ideal(t *topology.Topology, all []stream, rateMbit float64) []float64 {
	limits := append(hostLimits(t, all, rateMbit), fabricLimits(t, all, rateMbit)...)
	rates, stopped := make([]float64, len(all)), make([]bool, len(all))
	for {
		rise := math.Inf(1)
		for _, l := range limits {
			if n := l.rising(stopped); n > 0 {
				rise = min(rise, l.left(rates)/float64(n))
			}
		}
		if math.IsInf(rise, 1) {
			return rates
		}
		for i := range rates {
			if !stopped[i] {
				rates[i] += rise
			}
		}
		for _, l := range limits {
			if l.left(rates) > 1e-9*l.mbit {
				continue
			}
			for _, i := range l.streams {
				stopped[i] = true
			}
		}
	}
}

func (l *limit) rising(stopped []bool) (n int) {
	for _, i := range l.streams {
		if !stopped[i] {
			n++
		}
	}
	return n
}

func (l *limit) left(rates []float64) float64 {
	left := l.mbit
	for _, i := range l.streams {
		left -= rates[i]
	}
	return max(left, 0)
}

// hostLimits are those of the hosts' own links, each way.
func hostLimits(t *topology.Topology, all []stream, rateMbit float64) (limits []limit) {
	for n := range t.Hosts() {
		out := limit{mbit: rateOf(t, t.Ports(n.ID)[0].Link, rateMbit)}
		in := out
		for i, s := range all {
			if s.from == n.ID {
				out.streams = append(out.streams, i)
			}
			if s.to == n.ID {
				in.streams = append(in.streams, i)
			}
		}
		limits = append(limits, out, in)
	}
	return limits
}

// fabricLimits has one for each set of the sending racks.
func fabricLimits(t *topology.Topology, all []stream, rateMbit float64) (limits []limit) {
	byRack := make(map[topology.NodeID][]int)
	var froms []topology.NodeID
	for i, s := range all {
		rack := t.EdgeOf(s.from)
		if byRack[rack] == nil {
			froms = append(froms, rack)
		}
		byRack[rack] = append(byRack[rack], i)
	}
	for set := 1; set < 1<<len(froms); set++ {
		var l limit
		up := make(map[topology.LinkID]float64) // to a spine, by the link down from it
		for i, rack := range froms {
			if set>>i&1 == 0 {
				continue
			}
			l.streams = append(l.streams, byRack[rack]...)
			paths := t.Paths(all[byRack[rack][0]].from, all[byRack[rack][0]].to)
			for _, n := range paths.Live {
				links := paths.Path(n).Links
				up[links[2]] += rateOf(t, links[1], rateMbit)
			}
		}
		for down, mbit := range up {
			l.mbit += min(mbit, rateOf(t, down, rateMbit))
		}
		limits = append(limits, l)
	}
	return limits
}

func rateOf(t *topology.Topology, l topology.LinkID, rateMbit float64) float64 {
	return cmp.Or(t.Rate(l), rateMbit)
}
