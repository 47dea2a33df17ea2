package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/resequencer"
	"weft/topology"
)

func parse(t testing.TB, spec string) *topology.Topology {
	t.Helper()
	topo, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// list is a Workload of given flows, and what it was told of them.
type list struct {
	flows []workload.Flow
	then  func(f workload.Flow, at time.Duration, begin func(workload.Flow))
	done  []time.Duration
}

func (l *list) Next() (workload.Flow, bool) {
	if len(l.flows) == 0 {
		return workload.Flow{}, false
	}
	f := l.flows[0]
	l.flows = l.flows[1:]
	return f, true
}

func (l *list) Done(f workload.Flow, at time.Duration, begin func(workload.Flow)) {
	l.done = append(l.done, at)
	if l.then != nil {
		l.then(f, at, begin)
	}
}

// permutation has every host send to another one, without end if bytes is 0.
func permutation(topo *topology.Topology, seed uint64, bytes int64) *list {
	l := new(list)
	hosts := rand.New(rand.NewPCG(seed, 1)).Perm(topo.NumHosts())
	for i, h := range hosts {
		l.flows = append(l.flows, workload.Flow{
			Src: topology.NodeID(h), Dst: topology.NodeID(hosts[(i+1)%len(hosts)]), Bytes: bytes,
		})
	}
	return l
}

// drbSetting is that of DRB §5.
func drbSetting(topo *topology.Topology, policy string) Config {
	return Config{
		Topology: topo, Seed: 1, Policy: policy,
		Duration: 20 * time.Millisecond, Warmup: 10 * time.Millisecond,
		Delay:       5 * time.Microsecond,
		Queues:      []Queue{{Bytes: 128 << 10}},
		Resequencer: &resequencer.Config{Discipline: resequencer.Sequence, MinHold: 10 * time.Millisecond},
	}
}

func run(t testing.TB, c Config) *Result {
	t.Helper()
	r, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// goodput is the mean of hosts, in bit/s.
func goodput(c Config, r *Result) float64 {
	sum := int64(0)
	for _, n := range r.DeliveredBytes {
		sum += n
	}
	return float64(sum) * 8 / (r.End - c.Warmup).Seconds() / float64(len(r.DeliveredBytes))
}

// permutationTo is the host of the next rack of eight that has the same place.
func permutationTo(hosts, h int) topology.NodeID { return topology.NodeID((h + 8) % hosts) }
