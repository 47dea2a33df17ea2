package stack

import (
	"testing"
	"time"

	"weft/encap"
	"weft/link"
)

// Whatever comes in, in any order, a Host that watches its paths neither falls
// nor sends more than what it is asked for: every probe is counted as one thing.
func FuzzHost_probes(f *testing.F) {
	f.Add(request(f, 0, addrB), uint16(1))
	f.Add(request(f, 0xffff, addrB), uint16(1000))
	home, _ := encap.AppendProbe(nil, encap.Probe{Kind: encap.Boomerang, Origin: addrA, Target: addrA})
	f.Add(home, uint16(0))
	f.Fuzz(func(t *testing.T, packet []byte, microseconds uint16) {
		near, _ := link.NewPair(1500, 64)
		clock := &handClock{}
		h, err := New(Config{Address: addrA, Topology: fatTree, Device: near, Simulation: Simulation{Seed: 1, Clock: clock}, Liveness: &Liveness{}})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		for range 3 {
			h.Receive(append([]byte(nil), packet...))
			clock.Run(time.Duration(microseconds) * time.Microsecond)
		}
		s := h.Stats()
		l := s.Liveness
		if n := l.Echoed + l.Refused + l.Forged + l.Watcher.Unknown + l.Watcher.Answered + l.Watcher.Late; n != s.Ingress.Probes {
			t.Errorf("of %d probes %d are accounted for: %+v", s.Ingress.Probes, n, l)
		}
	})
}
