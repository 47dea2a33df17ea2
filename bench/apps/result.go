package apps

import (
	"fmt"
	"strings"

	"weft/bench/stats"
)

// Result is what an app took in a row. Figures are medians over the rounds.
type Result struct {
	App         string    `json:"app"`
	Row         string    `json:"row"`
	Topology    string    `json:"topology"`
	RateMbit    float64   `json:"rate_mbit"`
	Bytes       int       `json:"bytes"`        // about what a client moves
	Clients     int       `json:"clients"`      // at the same time; ranks of MPI
	Rounds      int       `json:"rounds"`       // that were measured whole; 0: there are no figures
	Failed      int       `json:"failed"`       // rounds that failed; they have no figures
	Seconds     float64   `json:"seconds"`      // until the last client was done
	All         []float64 `json:"all_seconds"`  // the same, of each round
	PairSeconds float64   `json:"pair_seconds"` // until the median client was done
	// P99Ms is the 99th percentile of the requests of the client that has the highest; null where
	// the program measures none, or a client has less than 100.
	P99Ms *float64 `json:"p99_ms"`
	// Ratio and P99Ratio are Seconds and P99Ms by those of the row kernel-ecmp, as medians of each
	// round's ratio; null without that.
	Ratio       *float64 `json:"ratio"`
	P99Ratio    *float64 `json:"p99_ratio"`
	Retransmits int64    `json:"retransmits"`
	// IdlePercent is of the machine's processors in rounds that have figures; where none has, in
	// those that failed; -1 if not known.
	IdlePercent float64 `json:"idle_percent"`
	// Void says that the figures show the machine and not the fabric: it was busy in this row or
	// in kernel-ecmp's.
	Void    bool   `json:"void"`
	Missing bool   `json:"missing"` // programs are not there: nothing ran
	Problem string `json:"problem"` // why rounds have no figures, of each of the first ones; "" if all have
}

// run is an app in a row, in a round.
type run struct {
	clients     []float64 // seconds that each took; of MPI one, of all rounds of the program
	p99         []float64 // ms, of each client; empty: not measured
	retransmits int64
	idle        float64 // percent; -1: not known
	failed      error   // why there is nothing but idle; nil: there is
}

// p99Of is a program's 99th percentile, 0 if it is none.
func p99Of(ms float64, requests int) float64 {
	if !stats.Enough(requests, 99) {
		return 0
	}
	return ms
}

// maxProblems is how many failed rounds are told of a row.
const maxProblems = 3

func (r *run) seconds() float64 { return stats.Percentile(r.clients, 100) }
func (r *run) highest() float64 { return stats.Percentile(r.p99, 100) }

// summarise fills in the figures of r from the runs of the row and those of kernel-ecmp, which
// are empty where that row does not run. busy is the least idle percentage that is none of a busy
// machine.
func (r *Result) summarise(runs, base []*run, busy float64) {
	var pair, p99, ratio, p99Ratio, retransmits, idle, failedIdle, baseIdle []float64
	var problems []string
	r.All = []float64{}
	for i, x := range runs {
		if x.failed != nil {
			failedIdle = known(failedIdle, x.idle)
			if r.Failed++; r.Failed <= maxProblems {
				problems = append(problems, fmt.Sprintf("round %d: %v", i+1, x.failed))
			}
			continue
		}
		idle = known(idle, x.idle)
		r.All, pair = append(r.All, x.seconds()), append(pair, stats.Median(x.clients))
		retransmits = append(retransmits, float64(x.retransmits))
		if len(x.p99) > 0 {
			p99 = append(p99, x.highest())
		}
		if i >= len(base) || base[i].failed != nil {
			continue
		}
		ratio, baseIdle = append(ratio, x.seconds()/base[i].seconds()), known(baseIdle, base[i].idle)
		if len(x.p99) > 0 && len(base[i].p99) > 0 {
			p99Ratio = append(p99Ratio, x.highest()/base[i].highest())
		}
	}
	if more := r.Failed - maxProblems; more > 0 {
		problems = append(problems, fmt.Sprintf("and %d rounds more", more))
	}
	if len(problems) > 0 {
		r.Problem = strings.Join(problems, "; ")
	}
	r.Rounds, r.IdlePercent = len(r.All), -1
	r.Seconds, r.PairSeconds, r.Retransmits = stats.Median(r.All), stats.Median(pair), int64(stats.Median(retransmits))
	if r.Rounds == 0 {
		idle = failedIdle
	}
	if len(idle) > 0 {
		r.IdlePercent = stats.Median(idle)
	}
	r.P99Ms, r.Ratio, r.P99Ratio = stats.MedianOrNil(p99), stats.MedianOrNil(ratio), stats.MedianOrNil(p99Ratio)
	r.Void = isBusy(idle, busy) || isBusy(baseIdle, busy)
}

// known appends an idle percentage that is known.
func known(list []float64, idle float64) []float64 {
	if idle < 0 {
		return list
	}
	return append(list, idle)
}

func isBusy(idle []float64, busy float64) bool {
	return len(idle) > 0 && stats.Median(idle) < busy
}
