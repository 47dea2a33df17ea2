package drill

import (
	"testing"
	"time"

	"weft/bench/sim/workload"
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
		hosts := make(map[topology.NodeID]bool)
		var first workload.Flow
		for i := 0; ; i++ {
			f, ok := s.Next()
			if !ok {
				break
			}
			if i%burstOf[atOnce] == 0 {
				first = f
			}
			if f.Start != first.Start || top.EdgeOf(f.Src) != top.EdgeOf(first.Src) {
				t.Fatalf("%s: %+v and %+v are not of one burst", atOnce, first, f)
			}
			if top.EdgeOf(f.Dst) == top.EdgeOf(f.Src) {
				t.Fatalf("%s: a flow stays in its rack", atOnce)
			}
			hosts[f.Src] = true
			bytes += f.Bytes
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
