package main

import (
	"testing"
	"time"

	simulator "weft/bench/sim"
	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/resequencer"
	"weft/topology"
)

// The simulator takes every value of every decision, and every mutant: one that it refuses would be found
// after hours.
func TestSim_takesWhatVariantsTune(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000")
	if err != nil {
		t.Fatal(err)
	}
	refused := func(tune func(*simulator.Config)) error {
		if tune == nil {
			return nil
		}
		c := simulator.Config{
			Topology: top, Seed: 1, Policy: "ecmp", Duration: time.Microsecond, Queues: []simulator.Queue{{Bytes: 150_000}},
			TCP: tcp.Config{WindowBytes: 60_000}, Resequencer: &resequencer.Config{},
		}
		tune(&c)
		c.Workload = workload.Merge() // nobody sends
		_, err := simulator.Run(c)
		return err
	}
	for _, e := range experiments() {
		for _, m := range e.Mutants {
			if err := refused(m.Tune); err != nil {
				t.Errorf("%s, mutant %q: %v", e.Name, m.Name, err)
			}
		}
		for _, d := range e.Decisions {
			for _, v := range d.Values {
				if err := refused(v.Tune); err != nil {
					t.Errorf("%s, %s %q: %v", e.Name, d.Parameter, v.Name, err)
				}
			}
		}
	}
}
