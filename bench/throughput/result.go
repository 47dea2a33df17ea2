package throughput

import (
	"slices"

	"weft/bench/stats"
)

// Latency is how long requests took: as many bytes as the response has, one after the other on
// one connection. Times are in µs.
type Latency struct {
	Bytes      int     `json:"bytes"`
	BesideBulk bool    `json:"beside_bulk"` // the case's bytes were sent meanwhile
	P50        float64 `json:"p50_us"`
	P99        float64 `json:"p99_us"`
	P999       float64 `json:"p999_us"`
}

// sample is what one round of one case measured.
type sample struct {
	gbps         float64 // payload received, 10⁹ bits a second
	cores        float64 // processors that were busy, less otherCores
	processCores float64 // of these, in the case's own processes
	otherCores   float64 // processors that other programs used meanwhile
	idle, steal  float64 // percent of all processors' time
	mallocs      float64 // in the case's processes, per 10⁶ bytes of payload
	retransmits  float64 // per 10⁹ bytes of payload
	shares       []float64
	plain        bool      // a daemon gave up its carrier meanwhile
	latency      []Latency // with Options.Latency
	anew         float64   // connections a second, with Options.Anew
}

func (s sample) perCore() float64 { return ratio(s.gbps, s.cores) }

// perGB turns processors into seconds of them per 10⁹ bytes of payload.
func (s sample) perGB(cores float64) float64 { return ratio(8*cores, s.gbps) }

// ratio is 0 where there is nothing to divide by.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// Result sums up the rounds of a case by their medians.
type Result struct {
	Case string `json:"case"`
	TCP  string `json:"tcp"` // whose it is, and its congestion control

	Connections int `json:"connections"` // at a time

	Gbps        float64 `json:"gbps"`          // payload, 10⁹ bits a second, of all connections
	GbpsPerCore float64 `json:"gbps_per_core"` // of a busy processor
	CPUPerGB    float64 `json:"cpu_s_per_gb"`  // seconds of processor time, of the whole machine, per 10⁹ bytes
	AllocsPerMB float64 `json:"allocs_per_mb"` // in the Go processes, per 10⁶ bytes
	Rounds      int     `json:"rounds"`
	Min         float64 `json:"min"` // Gbps of the slowest round
	Max         float64 `json:"max"` // Gbps of the fastest round

	// PercentOfIdeal is Gbps in percent of the plain TCP that all spines together could
	// carry: their number x rate x 1448/1514. An outer header (20 bytes a packet) counts
	// against the case. 0 if spines have no rate.
	PercentOfIdeal float64 `json:"percent_of_ideal,omitempty"`

	GbpsPerCoreMin float64 `json:"gbps_per_core_min"`
	GbpsPerCoreMax float64 `json:"gbps_per_core_max"`
	// OfKernel is GbpsPerCore divided by that of the case "kernel" in the same
	// round; 0 if that did not run.
	OfKernel float64 `json:"per_core_of_kernel,omitempty"`
	// ProcessCPUPerGB is the share of CPUPerGB that the case's own processes are charged
	// with. The kernel's work in interrupts is charged to the process that was
	// interrupted.
	ProcessCPUPerGB  float64 `json:"process_cpu_s_per_gb"`
	RetransmitsPerGB float64 `json:"retransmits_per_gb"`
	// PathShares are the shares of the bytes sent to the receiver by each spine, the
	// busiest first. The busiest spine may differ between rounds.
	PathShares []float64 `json:"path_shares"`
	// PlainRounds are those in which a daemon gave up its carrier for a while.
	PlainRounds int `json:"plain_rounds,omitempty"`

	Idle  float64 `json:"idle_percent"`  // of the machine's processors
	Steal float64 `json:"steal_percent"` // what other machines on the same hardware took
	// Latency is of requests, with Options.Latency.
	Latency []Latency `json:"latency,omitempty"`
	// ConnectionsPerSecond are opened anew, each for one request, with Options.Anew.
	ConnectionsPerSecond float64 `json:"connections_per_second,omitempty"`
	// OtherCores were busy with unrelated programs; CPUPerGB leaves them out.
	OtherCores float64 `json:"other_cores"`
}

// summarise makes a Result of a case's rounds, of which there is at least one;
// kernel are those of the case "kernel", by the same numbers, or nil.
func summarise(name, tcp string, rounds, kernel []sample) Result {
	of := func(f func(sample) float64) []float64 {
		var all []float64
		for _, s := range rounds {
			all = append(all, f(s))
		}
		return all
	}
	median := func(f func(sample) float64) float64 { return stats.Median(of(f)) }
	gbps := of(func(s sample) float64 { return s.gbps })
	perCore := of(sample.perCore)
	r := Result{
		Case: name, TCP: tcp, Rounds: len(rounds),
		Gbps: stats.Median(gbps), Min: slices.Min(gbps), Max: slices.Max(gbps),
		GbpsPerCore: stats.Median(perCore), GbpsPerCoreMin: slices.Min(perCore), GbpsPerCoreMax: slices.Max(perCore),
		CPUPerGB:         median(func(s sample) float64 { return s.perGB(s.cores) }),
		ProcessCPUPerGB:  median(func(s sample) float64 { return s.perGB(s.processCores) }),
		AllocsPerMB:      median(func(s sample) float64 { return s.mallocs }),
		RetransmitsPerGB: median(func(s sample) float64 { return s.retransmits }),
		Idle:             median(func(s sample) float64 { return s.idle }),
		Steal:            median(func(s sample) float64 { return s.steal }),
		OtherCores:       median(func(s sample) float64 { return s.otherCores }),
	}
	for _, s := range rounds {
		if s.plain {
			r.PlainRounds++
		}
	}
	for i := range rounds[0].shares {
		r.PathShares = append(r.PathShares, median(func(s sample) float64 { return s.shares[i] }))
	}
	var relative []float64
	for i := range min(len(rounds), len(kernel)) {
		relative = append(relative, ratio(rounds[i].perCore(), kernel[i].perCore()))
	}
	r.OfKernel = stats.Median(relative)
	for i, l := range rounds[0].latency {
		at := func(f func(Latency) float64) float64 {
			return median(func(s sample) float64 { return f(s.latency[i]) })
		}
		l.P50 = at(func(l Latency) float64 { return l.P50 })
		l.P99 = at(func(l Latency) float64 { return l.P99 })
		l.P999 = at(func(l Latency) float64 { return l.P999 })
		r.Latency = append(r.Latency, l)
	}
	r.ConnectionsPerSecond = median(func(s sample) float64 { return s.anew })
	return r
}
