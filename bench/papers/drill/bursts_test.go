package drill

import (
	"testing"
	"time"

	"weft/topology"
)

// Bursts are of one rack each, and carry the load that single flows do.
func TestBursts_areOfOneRack(t *testing.T) {
	top := parse(t, scaledUp)
	const until = 20 * time.Millisecond
	bytesOf := func(atOnce string) (bytes int64) {
		s, err := between(top, traffic{anyToAny, sizes, atOnce}, .5, until, 7)
		if err != nil {
			t.Fatal(err)
		}
		racks := make(map[time.Duration]topology.NodeID)
		flows, hosts := make(map[time.Duration]int), make(map[topology.NodeID]bool)
		for f, ok := s.Next(); ok; f, ok = s.Next() {
			leaf := top.EdgeOf(f.Src)
			if other, ok := racks[f.Start]; ok && other != leaf && atOnce != alone {
				t.Fatalf("%s: flows of two racks begin at %v", atOnce, f.Start)
			}
			if top.EdgeOf(f.Dst) == leaf {
				t.Fatalf("%s: a flow stays in its rack", atOnce)
			}
			racks[f.Start] = leaf
			flows[f.Start]++
			hosts[f.Src] = true
			bytes += f.Bytes
		}
		for at, n := range flows {
			if n%burstOf[atOnce] != 0 {
				t.Errorf("%s: %d begin at %v", atOnce, n, at)
			}
		}
		if len(hosts) != top.NumHosts() {
			t.Errorf("%s: %d of %d hosts send", atOnce, len(hosts), top.NumHosts())
		}
		return bytes
	}
	single := bytesOf(alone)
	for _, atOnce := range []string{four, sixteen, sixty} {
		if bytes := bytesOf(atOnce); bytes < single*8/10 || bytes > single*12/10 {
			t.Errorf("%s: %d bytes, by themselves %d", atOnce, bytes, single)
		}
	}
}
