package tcp

import (
	"math/rand/v2"
	"testing"
	"time"
)

// rough is a network that loses, delays and doubles packets at random.
type rough struct {
	loss, ackLoss, late, double float64
	by                          time.Duration // how late at most
}

func (r rough) fate(rng *rand.Rand, loss float64) func(int, Segment) []time.Duration {
	return func(int, Segment) (copies []time.Duration) {
		for n := 1; n > 0; n-- {
			if rng.Float64() < loss {
				continue
			}
			var d time.Duration
			if rng.Float64() < r.late {
				d = time.Duration(rng.Int64N(int64(r.by)))
			}
			copies = append(copies, d)
			if rng.Float64() < r.double {
				n++
			}
		}
		return copies
	}
}

// TestTransfer_deliversEveryByteOnce: the network compares the receiver with an
// oracle at every packet.
func TestTransfer_deliversEveryByteOnce(t *testing.T) {
	us := time.Microsecond
	for name, r := range map[string]rough{
		"nothing happens":  {},
		"loss 1 %":         {loss: .01},
		"loss 5 %":         {loss: .05},
		"loss 30 %":        {loss: .3},
		"ACK loss 30 %":    {ackLoss: .3},
		"reordering":       {late: .3, by: 200 * us},
		"doubles":          {double: .3},
		"everything":       {loss: .1, ackLoss: .1, late: .2, double: .1, by: 500 * us},
		"everything, late": {loss: .02, ackLoss: .02, late: .02, double: .05, by: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(12) {
				rng := rand.New(rand.NewPCG(seed, 3))
				n := network{
					config: Config{
						WindowBytes: []int{64 << 10, 256 << 10, 1 << 20, 4000}[seed%4],
						DCTCP:       seed%3 == 0, ECN: seed%3 == 1,
						Handshake: seed%2 == 0, RTOMin: time.Millisecond,
					},
					total: []int64{1, 1460, 1461, 30_000, 700_001, 3_000_000}[seed%6],
					delay: 20 * us, packet: time.Duration(seed%2) * 1200,
					room: 100, markAt: 20,
				}
				n.data, n.acks = r.fate(rng, r.loss), r.fate(rng, r.ackLoss)
				if err := n.run(time.Hour); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if again, timeouts, _ := n.s.Stats(); name == "nothing happens" && n.dropped == 0 && again+timeouts > 0 {
					t.Errorf("seed %d: %d sent again, %d timeouts without a loss", seed, again, timeouts)
				}
			}
		})
	}
}

// FuzzTransfer has bytes decide what becomes of each packet.
func FuzzTransfer(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 7, 90, 0, 2, 200, 31}, uint32(100_000), uint16(40_000), uint8(3))
	f.Fuzz(func(t *testing.T, script []byte, total uint32, window uint16, thresh uint8) {
		at := 0
		fate := func(int, Segment) []time.Duration {
			if at >= len(script) { // from here on all is well
				return []time.Duration{0}
			}
			b := script[at]
			at++
			switch b % 4 {
			case 0:
				return nil
			case 1:
				return []time.Duration{time.Duration(b) * time.Microsecond, 0}
			case 2:
				return []time.Duration{time.Duration(b) * time.Microsecond}
			}
			return []time.Duration{0}
		}
		n := network{
			config: Config{WindowBytes: int(window) + 1460, DupThresh: int(thresh)%10 + 1, DCTCP: thresh > 127, Handshake: thresh&64 != 0},
			total:  int64(total%500_000) + 1, delay: 20 * time.Microsecond, packet: 1200, room: 50, markAt: 10,
			data: fate, acks: fate,
		}
		if err := n.run(1000 * time.Hour); err != nil {
			t.Error(err)
		}
	})
}

// TestTransfer_slightReorderingCostsNothing: a packet that fewer than DupThresh
// later ones overtake is not sent again, one that more do is.
func TestTransfer_slightReorderingCostsNothing(t *testing.T) {
	for _, thresh := range []int{1, 3, 8} {
		for overtaken := 0; overtaken <= thresh; overtaken++ {
			n := network{config: Config{DupThresh: thresh}, total: 3_000_000, delay: 20 * time.Microsecond, packet: 1200}
			n.data = func(i int, _ Segment) []time.Duration {
				if i%50 == 20 {
					return []time.Duration{time.Duration(overtaken)*1200 + 600}
				}
				return []time.Duration{0}
			}
			n.mustRun(t)
			again, timeouts, dupAcks := n.s.Stats()
			if timeouts > 0 || (again > 0) != (overtaken == thresh) || (dupAcks > 0) != (overtaken > 0) {
				t.Errorf("DupThresh %d, overtaken by %d: %d sent again, %d timeouts, %d duplicate acknowledgements",
					thresh, overtaken, again, timeouts, dupAcks)
			}
		}
	}
}
