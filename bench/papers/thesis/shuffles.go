package thesis

import (
	"fmt"
	"maps"

	"weft/bench/papers"
	"weft/hedera"
)

// What Table 4.2 may depend on.

const (
	shuffleMegas = 500 // MB to each other host
	shuffleBytes = shuffleMegas * 1_000_000
)

// shuffleContended is of TCP where flows meet. The thesis: "when there was contention between
// flows, an entire TCP window of packets was often lost. So the TCP connection was idle until
// the retransmission timer fired" (§4.4.2), which max-min fair rates know nothing of. It does
// not say how much of the time ports were idle, so these are all tenths, from nearly all of the
// rate to nearly nothing, and the same for all ports, the non-blocking switch's included. A mean,
// a goodput and a bandwidth of a scheme are one measurement. Packets of our own TCP, 1/25 and
// 1/5 of the bytes, and 16 to 512 KB of buffer, take a host 168 to 197 s at the non-blocking
// switch, as long as 60 to 50 %; the thesis' 227 s are those of 40 %. So they are fits.
var shuffleContended = fitted(papers.Decision{
	Parameter: "part of a full port's rate that TCP's flows get where they meet", About: []string{"ECMP", "GFF", "SA", "non-blocking"},
	Values: tenths(nil),
})

// tenths are all parts, beside something else.
func tenths(beside map[string]string) (values []papers.DecisionValue) {
	for tenth := 9; tenth > 0; tenth-- {
		v := papers.DecisionValue{Name: fmt.Sprintf("%d %%", 10*tenth), Replace: map[string]string{"contended": fmt.Sprintf("0.%d", tenth)}}
		maps.Copy(v.Replace, beside)
		values = append(values, v)
	}
	return values
}

// shuffleNextTick is when annealing places a flow. With global first fit "a large flow can be
// re-routed immediately upon detection", "whereas Simulated Annealing waits for the next
// scheduling tick" (§4.2.5); switches are polled, and flows scheduled, every five seconds
// (§4.3.4). In the experiment itself both place what a poll finds with that poll.
var shuffleNextTick = papers.Decision{
	Parameter: "tick at which annealing places a flow", About: []string{"SA"},
	Ends: "with the poll that finds it, or the next one", Discrete: true,
	Values: []papers.DecisionValue{{Name: "the next one", Replace: annealingWaits}},
}

var annealingWaits = map[string]string{"SA's tick": "next"}

// shuffleBoth has both parameters open at once. It was committed with them, before each was
// run.
var shuffleBoth = fitted(papers.Decision{
	Parameter: "part of a full port's rate where flows meet, and annealing places at the next tick", About: []string{"ECMP", "GFF", "SA", "non-blocking"},
	Values: tenths(annealingWaits),
})

// shuffleMB is what an MB is. The thesis' bisection bandwidths are 16 of its goodputs if these
// are in 2^20 bytes a second: 16 * 33.10 * 2^20 * 8 = 4.44 Gbit/s, and so on.
var shuffleMB = papers.Decision{
	Parameter: "an MB", About: []string{"ECMP", "GFF", "SA", "non-blocking"},
	Ends: "10^6 bytes or 2^20", Discrete: true,
	Values: []papers.DecisionValue{{Name: "2^20 bytes", Replace: map[string]string{"MB": "1048576"}}},
}

// waiting is a rule that places flows with the Round after the one that has seen them first.
type waiting struct {
	hedera.Rule
	seen map[*hedera.Flow]bool
}

func nextTick(r hedera.Rule) hedera.Rule {
	return &waiting{Rule: r, seen: make(map[*hedera.Flow]bool)}
}

// Round is hedera.Rule's.
func (w *waiting) Round(flows []*hedera.Flow) {
	var before []*hedera.Flow
	for _, f := range flows {
		if w.seen[f] {
			before = append(before, f)
		}
		w.seen[f] = true
	}
	w.Rule.Round(before)
}

// End is hedera.Rule's.
func (w *waiting) End(f *hedera.Flow) {
	delete(w.seen, f)
	w.Rule.End(f)
}
