package pacing

import (
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
)

// Four connections of the kernel's TCP share a link of 20 Mbit/s with 75,000 bytes of queue.
// With reaction points the queue is far shorter than with tail drop and the link stays in use;
// where the messages are not believed (the host lacks the key), it is as long as before. The log
// has the table: -v prints it.
func TestHost_shortensTheQueue(t *testing.T) {
	b := newBed(t, "fabric-rate=20,core-rate=100")
	p := b.congestionPoint("e0.0", 1, signing)
	for range 4 {
		b.stream()
	}
	kerneltest.OnTime(t, func() string {
		time.Sleep(time.Second)
		tail := b.measure(p, 2*time.Second)
		h := b.reactionPoints(secretOf)
		time.Sleep(time.Second)
		slowed := b.measure(p, 2*time.Second)
		stats := h.Stats()
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		deaf := b.reactionPoints(func(uint8) []byte { return nil })
		time.Sleep(time.Second)
		ignored := b.measure(p, 2*time.Second)
		deafStats := deaf.Stats()
		if err := deaf.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("tail drop:       %v", tail)
		t.Logf("QCN:             %v; %+v; switch %+v", slowed, stats, p.teller.Stats())
		t.Logf("QCN, no key:     %v; %+v", ignored, deafStats)
		switch {
		case stats.Believed == 0 || stats.Malformed != 0:
			return "no message was believed"
		case deafStats.Believed != 0 || deafStats.Malformed == 0:
			return "messages without a known key were believed"
		case slowed.mean > tail.mean/2 || slowed.mean > ignored.mean/2:
			return "the queue is not half as long with QCN"
		case slowed.mbit < 0.7*tail.mbit:
			return "the link is not used with QCN"
		}
		return ""
	})
}

// Of two congestion points on the path the flow obeys that of the slower link, wherever that is
// (thesis §5.2.2: several bumps).
func TestHost_severalBumps(t *testing.T) {
	for _, rates := range []string{"fabric-rate=30,core-rate=10", "fabric-rate=10,core-rate=30"} {
		t.Run(rates, func(t *testing.T) {
			b := newBed(t, rates)
			first, second := b.congestionPoint("e0.0", 1, signing), b.congestionPoint("a0.1", 1, signing)
			h := b.reactionPoints(secretOf)
			b.stream()
			kerneltest.OnTime(t, func() string {
				time.Sleep(time.Second)
				at := []measured{b.measure(first, time.Second), b.measure(second, time.Second)}
				told := []uint64{first.teller.Stats().Told, second.teller.Stats().Told}
				t.Logf("first: %v, %d told; second: %v, %d told; %+v", at[0], told[0], at[1], told[1], h.Stats())
				slow := 0
				if rates == "fabric-rate=30,core-rate=10" {
					slow = 1
				}
				switch {
				case h.Stats().Believed == 0 || told[slow] == 0:
					return "the slower link's congestion point is not heard"
				case at[slow].mbit < 4 || at[slow].mbit > 10.5:
					return "the slower link does not set the rate"
				case at[slow].mean > 75_000/2/2: // of 10 Mbit/s: half of what tail drop would fill
					return "the slower link's queue is long"
				}
				return ""
			})
		})
	}
}
