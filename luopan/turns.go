package luopan

import (
	"math"
	"slices"
	"time"
)

const (
	// worse is by how many units of queue a sample must be worse than the path that a
	// flowcell takes to lose its turn. Less is gone before the next flowcell comes.
	worse = 4
	// cell is what a flowcell puts before the next one on its path, in bytes.
	cell = 64 << 10
)

// stride is how many paths further the next turn is: one more than the root of n, or the
// number nearest to that without a common factor, so that all paths have a turn before one
// has the next. Where k switches lead to k paths each, the next turn is so at the next switch
// and at the next of its paths. Taking turns in ascending order would have a switch's paths
// follow each other (Luopan §2.2).
func stride(n int) int {
	next := int(math.Round(math.Sqrt(float64(n)))) + 1
	for off := range n {
		for _, s := range [2]int{next - off, next + off} {
			if s > 0 && coprime(s, n) {
				return s
			}
		}
	}
	return 1
}

func coprime(a, b int) bool {
	for b != 0 {
		a, b = b, a%b
	}
	return a == 1
}

// takeTurn takes the next path in turn.
func (d *destination) takeTurn() int {
	path := d.paths[d.turnOf%len(d.paths)]
	d.turnOf = (d.turnOf + d.stride) % len(d.paths)
	return path
}

// drawTurns makes the round one of the paths whose turn is next: first those of the round
// before that have not had theirs. Where only some have answered the others are full.
func (t *Table) drawTurns(d *destination, before, round []sample) {
	n, none := 0, !slices.ContainsFunc(before, func(s sample) bool { return s.answered })
	add := func(path int32) {
		if n < len(round) && !slices.ContainsFunc(round[:n], func(s sample) bool { return s.path == path }) {
			round[n] = sample{path: path, live: true}
			n++
		}
	}
	for i := range before {
		if s := &before[i]; s.live && !s.spent && (s.answered || none) {
			add(s.path)
		}
	}
	for n < len(round) {
		add(int32(d.takeTurn()))
	}
}

// ready returns the sample in use with the least bytes before the next flowcell, the first
// of equals, of those that have not had their turn; nil if there is none.
func (t *Table) ready(slot int32, now time.Duration) (best *sample) {
	d := &t.destinations[slot]
	if now >= d.until {
		return nil
	}
	round := t.round(slot, d.shown)
	for i := range round {
		if s := &round[i]; s.answered && s.live && !s.spent && (best == nil || s.rank+s.own < best.rank+best.own) {
			best = s
		}
	}
	return best
}

// taken notes that a flowcell takes the path of a sample in use. Its turn is over, unless
// with the flowcell it has no more before it than is usual. Those that are worse have lost
// theirs.
func (t *Table) taken(slot int32, b *sample) {
	d := &t.destinations[slot]
	limit := b.rank + worse*int64(t.config.QueueUnit)
	if b.rank+b.own+cell > d.typical {
		t.spend(slot, b.path)
	}
	round := t.round(slot, d.shown)
	for i := range round {
		if s := &round[i]; s != b && s.answered && s.rank >= limit {
			t.spend(slot, s.path)
		}
	}
}

// carried notes that a path has carried more. With a flowcell's bytes its turn is over, even
// if it was not chosen here.
func (t *Table) carried(slot int32, path int) {
	if !t.config.Turns {
		return
	}
	d := &t.destinations[slot]
	for _, s := range t.round(slot, d.shown) {
		if int(s.path) == path && s.own >= cell && s.rank+s.own > d.typical {
			t.spend(slot, s.path)
		}
	}
}

// spend ends a path's turn. The round that is asked for may have it as well.
func (t *Table) spend(slot int32, path int32) {
	for which := range uint8(2) {
		round := t.round(slot, which)
		for i := range round {
			if round[i].path == path {
				round[i].spent = true
			}
		}
	}
}

// nextTurn returns the path of a flowcell that no sample decides on: the next in turn, not
// one to be shunned if there are others. It is one that has been asked about, unless the
// answer is overdue: then something is before it.
func (t *Table) nextTurn(slot int32, now time.Duration) int {
	d := &t.destinations[slot]
	if d.answers[d.asked] == 0 && now-d.began <= d.least+d.least/2 {
		round := t.round(slot, d.asked)
		for i := range round {
			if s := &round[i]; s.live && !s.spent && !d.shuns(int(s.path), now) {
				t.spend(slot, s.path)
				return int(s.path)
			}
		}
	}
	path := d.takeTurn()
	for range d.paths {
		if !d.shuns(path, now) {
			break
		}
		path = d.takeTurn()
	}
	return path
}

// calm reports whether a rack need not be asked: nothing has been sent to it since it has
// answered. The next flowcell ends that. So samples are as young as can be of racks that are
// sent to, and cost nothing of others.
func (t *Table) calm(d *destination) bool {
	return t.config.Turns && d.answers[d.asked] > 0 && !d.hit && d.sent == 0
}
