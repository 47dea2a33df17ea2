package asymmetry

import (
	"time"

	"weft/bench/failover"
	"weft/bench/stats"
	"weft/bench/testbed"
	"weft/topology"
)

// Result is the result of one policy in one scenario.
type Result struct {
	Topology string `json:"topology"` // the scenario's name
	Spec     string `json:"spec"`     // of the fabric
	About    string `json:"about"`    // the fault
	Fabric   string `json:"fabric"`   // what it is made of
	Policy   string `json:"policy"`
	Encap    string `json:"encap"`
	Metered  bool   `json:"metered"` // switches measure their queues
	Seed     uint64 `json:"seed"`

	// Flows are the long streams. GoodputMbit is that of streams and mice together. Ideal
	// is the best that they could get, with every packet on the best path.
	Flows          int     `json:"flows"`
	GoodputMbit    float64 `json:"goodput_mbit"`
	IdealMbit      float64 `json:"ideal_mbit"`
	PercentOfIdeal float64 `json:"percent_of_ideal"`
	BrokenFlows    int     `json:"broken_flows"` // connections that failed
	Retransmits    int64   `json:"retransmits"`

	// Mice are transfers of 20 KB over open connections, timed until the receiver's
	// answer. An aborted one counts as ten seconds.
	Mice        int     `json:"mice"`
	MiceGivenUp int     `json:"mice_given_up"`
	MiceP50     float64 `json:"mice_p50_us"`
	MiceP99     float64 `json:"mice_p99_us"`

	// SharePerPath is the share, in percent, of T2's bytes to T3 on each of its paths P1
	// to P4, as counted at T2's uplinks.
	SharePerPath map[string]float64 `json:"share_per_path"`

	Probing *Probing `json:"probing,omitempty"` // of policies that sample

	IdlePercent float64 `json:"idle_percent"` // of the machine's processors; -1 if unknown
	CPUBound    bool    `json:"cpu_bound"`    // too little idle time for a comparison
	DurationS   float64 `json:"duration_s"`
}

// reading is what is counted, at one moment.
type reading struct {
	at       time.Time
	received int64
	counters testbed.Counters
	cpu      testbed.CPU
	probes   probes
}

func (l *load) read(s *testbed.Session) (r reading, err error) {
	if r.counters, err = s.Counters(); err != nil {
		return r, err
	}
	r.probes = readProbes(s)
	r.cpu = testbed.ReadCPU()
	r.received, r.at = l.received.Load(), time.Now()
	return r, nil
}

// between fills in what was counted from a to b in a fabric.
func (r *Result) between(a, b reading, t *topology.Topology) {
	elapsed := b.at.Sub(a.at)
	r.DurationS = elapsed.Seconds()
	r.GoodputMbit = float64(b.received-a.received) * 8 / elapsed.Seconds() / 1e6
	r.PercentOfIdeal = 100 * r.GoodputMbit / r.IdealMbit
	r.Retransmits = b.counters.Retransmits - a.counters.Retransmits
	r.IdlePercent = testbed.IdlePercent(a.cpu, b.cpu)
	r.CPUBound = r.IdlePercent >= 0 && r.IdlePercent < testbed.CPUBound
	var up []uint64
	for _, l := range uplinks(t) {
		up = append(up, b.counters.Links[l].Up-a.counters.Links[l].Up)
	}
	r.SharePerPath = shares(up)
}

// shares are parts of the sum of all in percent, by the paths' names.
func shares(bytes []uint64) map[string]float64 {
	sum := uint64(0)
	for _, b := range bytes {
		sum += b
	}
	all := make(map[string]float64)
	for n, b := range bytes {
		all[pathName(n)] = 100 * float64(b) / float64(max(sum, 1))
	}
	return all
}

// idealMbit is what all streams together could get of payload. There is one ideal
// for all carriers: IP-in-IP's, which takes 20 bytes a packet.
func idealMbit(t *topology.Topology, all []stream, rateMbit float64) (sum float64) {
	for _, r := range ideal(t, all, rateMbit) {
		sum += r
	}
	return sum * failover.Payload
}

// mice sums up those that were measured.
func (r *Result) mice(l *load) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Mice, r.MiceGivenUp = len(l.micros), l.givenUp
	r.MiceP50, r.MiceP99 = stats.Percentile(l.micros, 50), stats.Percentile(l.micros, 99)
}
