package policy

import (
	"testing"
	"time"

	"weft/drb"
	"weft/flowcell"
)

// fixed is a selector of one path.
type fixed uint64

func (f fixed) Next([]int, time.Duration) int { return int(f) }
func (fixed) Acked(int, bool, time.Duration)  {}
func (fixed) Lost(int, bool, time.Duration)   {}

// A row that heeds what becomes of packets says so, makes a selector of each flow, and is
// nothing for the program at the uplink. It can be compared, as others can.
func TestHeeds(t *testing.T) {
	for _, unit := range []flowcell.Unit{packet, cell64, flowlet} {
		p := row("other", unit, drb.Random, "here").Heeds("by hand", func(seed uint64) Selector { return fixed(seed) })
		if p.Aware != Heeding || p.How() != "by hand" || p.AtUplink() {
			t.Errorf("%+v chooses by %q, at the uplink %v", p, p.How(), p.AtUplink())
		}
		if q := p; q != p {
			t.Error("a row is not itself")
		}
		for seed := range uint64(3) {
			if got := p.NewSelector(seed).Next(nil, 0); got != int(seed) {
				t.Errorf("the selector of seed %d is that of %d", seed, got)
			}
		}
	}
}
