package drb

import (
	"slices"
	"sort"
	"time"

	"weft/bench/papers"
)

// The degrees of disorder that a packet may have. The paper says that "3%, 15% and 74%
// packets experience ⩾3 out-of-order degrees", and not what a degree is.
const (
	byOvertaking   = "packets sent later that have arrived before it"
	byExtent       = "places behind the first arrival of those sent later (RFC 4737 §4.2)"
	byDisplacement = "places from where it would be in order, to either side (RFC 5236 §3)"
	byGap          = "packets from the next one in order to it, if it is ahead"
	byLag          = "packets from it to the latest sent that has arrived, as Linux's TCP counts reordering"
	byOccupancy    = "packets that the resequencer holds after its arrival (RFC 5236 §4)"
)

// degreesOfDisorder are those of the standards, of Linux's TCP, and of a resequencer's own view.
var degreesOfDisorder = papers.Decision{
	Parameter: "degree of disorder", About: []string{"RB"},
	Values: []papers.DecisionValue{
		{Name: byExtent, Replace: map[string]string{byOvertaking: byExtent}},
		{Name: byDisplacement, Replace: map[string]string{byOvertaking: byDisplacement}},
		{Name: byGap, Replace: map[string]string{byOvertaking: byGap}},
		{Name: byLag, Replace: map[string]string{byOvertaking: byLag}},
		{Name: byOccupancy, Replace: map[string]string{byOvertaking: byOccupancy}},
	},
}

// disorder counts packets of a run by a degree. Packets that were lost are not told from
// those that are late for more than farthest.
type disorder struct {
	degree string
	warmup time.Duration
	flows  map[uint32]*arrivals
	counts [64]uint64 // by degree, the last one of all above
}

// farthest bounds what is kept of a flow.
const farthest = 4096

// arrivals are those of a flow.
type arrivals struct {
	n, next, top int // arrived; all sent before next have; 1 more than the latest sent
	ahead        map[int]bool
	records      []record // arrivals that were later sent than all before
}

// record is an arrival.
type record struct{ sent, at int }

func newDisorder(degree string, warmup time.Duration) *disorder {
	return &disorder{degree: degree, warmup: warmup, flows: make(map[uint32]*arrivals)}
}

// arrived is sim.Config's OnArrival.
func (d *disorder) arrived(now time.Duration, flow, sent uint32) {
	a := d.flows[flow]
	if a == nil {
		a = &arrivals{ahead: make(map[int]bool)}
		d.flows[flow] = a
	}
	degree := a.arrived(int(sent), d.degree)
	if now >= d.warmup {
		d.counts[min(degree, len(d.counts)-1)]++
	}
}

// arrived takes in an arrival, and returns its degree.
func (a *arrivals) arrived(sent int, degree string) int {
	gap := max(sent-a.next, 0)
	lag, extent := 0, 0
	if sent >= a.top {
		a.records = append(a.records, record{sent, a.n})
		if len(a.records) > 2*farthest {
			a.records = slices.Delete(a.records, 0, farthest)
		}
		a.top = sent + 1
	} else {
		lag = a.top - 1 - sent
		first := sort.Search(len(a.records), func(i int) bool { return a.records[i].sent > sent })
		extent = a.n - a.records[first].at
	}
	displacement := a.n - sent
	if displacement < 0 {
		displacement = -displacement
	}
	a.n++
	if sent >= a.next {
		a.ahead[sent] = true
	}
	for a.ahead[a.next] || len(a.ahead) > farthest {
		delete(a.ahead, a.next)
		a.next++
	}
	switch degree {
	case byExtent:
		return extent
	case byDisplacement:
		return displacement
	case byGap:
		return gap
	case byLag:
		return lag
	case byOccupancy:
		return len(a.ahead)
	}
	panic("no degree of disorder: " + degree)
}

// share is the percentage of packets with a degree of n or more.
func (d *disorder) share(n int) float64 { return percentFrom(d.counts, n) }
