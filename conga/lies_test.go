package conga

import (
	"testing"
	"time"
)

// shares counts choices of new flowlets to a rack, each of a kilobyte and so
// far apart that they fill half a link. The rack's reports come between.
func shares(table *Table, dst uint32, from time.Duration, report func(now time.Duration)) (n [4]int) {
	gap := time.Duration(1000 * 8 * 2 / table.config.RateBits * 1e9)
	for i := range 4000 {
		now := from + time.Duration(i)*gap
		report(now)
		p := table.Choose(dst, four, asTag, -1, now)
		table.Sent(uint8(p), 1000, now)
		n[p]++
	}
	return n
}

func nothing(time.Duration) {}

func even(n [4]int) bool {
	for _, x := range n {
		if x < 850 || x > 1150 {
			return false
		}
	}
	return true
}

// Whatever a rack reports decides on nothing but what is sent to that rack, and
// not for longer than two Ages.
func TestLies_concernTheLiarsRackOnlyAndEnd(t *testing.T) {
	for name, c := range map[string]struct {
		metrics [4]uint8
		even    bool
	}{
		"all 7":                 {[4]uint8{7, 7, 7, 7}, true}, // the choice is local
		"all 0":                 {[4]uint8{}, true},
		"0 for one, 7 for rest": {[4]uint8{7, 7, 0, 7}, false}, // all of it goes there
	} {
		table := newTable(t, Config{Age: 10 * ms, Seed: 3})
		const liar, honest = 1, 2
		table.Choose(liar, four, asTag, -1, 0)
		end := time.Duration(0)
		lied := shares(table, liar, 0, func(now time.Duration) {
			for tag, m := range c.metrics {
				table.Feedback(liar, uint8(tag), m, now)
			}
			end = now
		})
		if even(lied) != c.even || !c.even && lied[2] < 3900 {
			t.Errorf("%s: to the liar go %v", name, lied)
		}
		// To another rack next to nothing goes by the path that the liar fills,
		// since this host knows that it is full; no other path is closed to it.
		for range 100 {
			p := table.Choose(honest, four, asTag, -1, end)
			if !c.even && p == 2 {
				t.Errorf("%s: an honest rack is sent to by the path that the liar fills", name)
				break
			}
		}
		if n := shares(table, honest, end+ms, nothing); !even(n) {
			t.Errorf("%s: to an honest rack go %v", name, n)
		}
		if n := shares(table, liar, end+20*ms, nothing); !even(n) {
			t.Errorf("%s: two ages after the last lie %v go there", name, n)
		}
	}
}

// A flood of reports makes no entries, and one of marks from anywhere no more
// than there is room for; what is known of a rack in use survives it.
func TestLies_floods(t *testing.T) {
	table := newTable(t, Config{MaxDestinations: 256})
	table.Choose(theRack, four, asTag, -1, 0)
	table.Feedback(theRack, 1, 5, 0)
	for i := range uint32(100_000) {
		now := time.Duration(i)
		table.Feedback(1000+i, uint8(i), uint8(i>>4), now)
		table.Received(1000+i, uint8(i), uint8(i>>4), now)
		if i%100 == 0 { // somebody honest among them
			table.Received(theRack, 3, 2, now)
		}
	}
	s := table.Stats()
	if s.Destinations != 1 || s.Sources != 256 || s.Refused != 100_000 {
		t.Errorf("%+v", s)
	}
	if got := withoutChosen(table.Destinations(0)[0].Tags); len(got) != 1 || got[0].Tag != 1 || got[0].Remote != 5 {
		t.Errorf("reports that are known: %+v", got)
	}
	if got := next(table, 100_000); got != (report{3, 2, true}) {
		t.Errorf("what an honest rack is to be told was forgotten: %+v", got)
	}
}
