package resequencer

import (
	"math/rand/v2"
	"testing"
	"time"

	"weft/flowcell"
)

// Observe tells of each packet why it was delivered, as Stats counts it, before it is delivered,
// and of no packet twice. Of those in order it tells of some.
func TestObserve_agreesWithStats(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 24))
		b := New[int](Config{Discipline: Discipline(seed % 4), Hold: 2 * time.Millisecond, FlowPackets: 40, TotalPackets: 60, Flows: 4})
		told := make(map[int]Cause)
		b.Observe(func(p int, why Cause) {
			if was, twice := told[p]; twice {
				t.Fatalf("seed %d: packet %d was told of twice: %s, %s", seed, p, was, why)
			}
			told[p] = why
		})
		sum := make(map[Cause]uint64)
		next, now := 0, time.Duration(0)
		deliver := func(out []int) {
			for _, p := range out {
				if why, ok := told[p]; ok {
					sum[why]++
					told[p] = "delivered"
				} else {
					sum["untold"]++
				}
			}
		}
		for range 3000 {
			now += time.Duration(r.IntN(100)) * time.Microsecond
			s := of(r.IntN(6), in(uint16(next/50), uint8(next%50), data(max(0, next/6+r.IntN(9)-4))))
			switch r.IntN(100) {
			case 0:
				s = with(s, flowcell.FlagRST)
			case 1:
				s = with(s, flowcell.FlagSYN)
			case 2:
				s.Payload = 0
			}
			deliver(b.Push(&s, next, now, nil))
			next++
			if r.IntN(4) == 0 {
				deliver(b.Expire(now, nil))
			}
		}
		deliver(b.Flush(nil))
		st := b.Stats()
		for why, want := range map[Cause]uint64{CauseFilled: st.Filled, CauseTimedOut: st.TimedOut, CauseLoss: st.Loss, CauseRetransmission: st.Retransmission,
			CauseBound: st.Bound, CauseFlushed: st.Flushed, CauseStray: st.Stray} {
			if sum[why] != want {
				t.Errorf("seed %d: %d were told of as %s, Stats has %d", seed, sum[why], why, want)
			}
		}
		if got, want := sum["untold"]+sum[CauseInOrder]+sum[CausePassed], st.InOrder+st.Passed; got != want {
			t.Errorf("seed %d: %d in order or passed, Stats has %d", seed, got, want)
		}
	}
}
