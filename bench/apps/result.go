package apps

import (
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
	Rounds      int       `json:"rounds"`       // that were measured whole
	Seconds     float64   `json:"seconds"`      // until the last client was done
	All         []float64 `json:"all_seconds"`  // the same, of each round
	PairSeconds float64   `json:"pair_seconds"` // until the median client was done
	// P99Ms is the 99th percentile of the requests of the client that has the highest, in MPI of
	// the rounds; null where the program measures none.
	P99Ms *float64 `json:"p99_ms"`
	// Ratio and P99Ratio are Seconds and P99Ms by those of the row kernel-ecmp, as medians of each
	// round's ratio; null without that.
	Ratio       *float64 `json:"ratio"`
	P99Ratio    *float64 `json:"p99_ratio"`
	Retransmits int64    `json:"retransmits"`
	IdlePercent float64  `json:"idle_percent"` // of the machine's processors; -1 if not known
	// Void says that the figures show the machine and not the fabric: it was busy in this row or
	// in kernel-ecmp's.
	Void    bool   `json:"void"`
	Missing bool   `json:"missing"` // programs are not there: nothing ran
	Problem string `json:"problem"` // why rounds have no figures, "" if all have
}

// run is an app in a row, in a round.
type run struct {
	clients     []float64 // seconds that each took; of MPI one, of all rounds of the program
	p99         []float64 // ms, of each client; empty: not measured
	retransmits int64
	idle        float64 // percent
}

func (r *run) seconds() float64 { return stats.Percentile(r.clients, 100) }
func (r *run) highest() float64 { return stats.Percentile(r.p99, 100) }

// summarise fills in the figures of r from the runs of the row and those of kernel-ecmp, which
// has nil in a round that failed, and is empty where that row does not run. busy is the least
// idle percentage that is none of a busy machine.
func (r *Result) summarise(runs, base []*run, busy float64) {
	var pair, p99, ratio, p99Ratio, retransmits, idle, baseIdle []float64
	for i, x := range runs {
		if x == nil {
			continue
		}
		r.All, pair = append(r.All, x.seconds()), append(pair, stats.Median(x.clients))
		retransmits, idle = append(retransmits, float64(x.retransmits)), append(idle, x.idle)
		if len(x.p99) > 0 {
			p99 = append(p99, x.highest())
		}
		if i >= len(base) || base[i] == nil {
			continue
		}
		ratio, baseIdle = append(ratio, x.seconds()/base[i].seconds()), append(baseIdle, base[i].idle)
		if len(x.p99) > 0 && len(base[i].p99) > 0 {
			p99Ratio = append(p99Ratio, x.highest()/base[i].highest())
		}
	}
	if r.Rounds = len(r.All); r.Rounds == 0 {
		r.All, r.IdlePercent = []float64{}, -1
		return
	}
	r.Seconds, r.PairSeconds = stats.Median(r.All), stats.Median(pair)
	r.Retransmits, r.IdlePercent = int64(stats.Median(retransmits)), stats.Median(idle)
	r.P99Ms, r.Ratio, r.P99Ratio = median(p99), median(ratio), median(p99Ratio)
	r.Void = isBusy(idle, busy) || isBusy(baseIdle, busy)
}

func isBusy(idle []float64, busy float64) bool {
	m := stats.Median(idle)
	return len(idle) > 0 && m >= 0 && m < busy
}

// median returns nil of nothing.
func median(x []float64) *float64 {
	if len(x) == 0 {
		return nil
	}
	m := stats.Median(x)
	return &m
}
