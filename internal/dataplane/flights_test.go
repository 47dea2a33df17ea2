package dataplane

import (
	"math/rand/v2"
	"testing"

	"weft/flowcell"
)

// What flights says is what a list of everything sent says: of random flows that
// send, send again and are acknowledged, in and out of order, over the wrap of
// sequence numbers.
func TestFlights_likeAConnection(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 1))
	f := newFlights(seed)
	f.on.Store(true)
	for flow := range uint16(200) {
		out := flowcell.FiveTuple{SrcPort: 1000 + flow, DstPort: 80, Proto: flowcell.ProtoTCP}
		in := out.Reverse()
		isn := rng.Uint32() | 0xffff0000*uint32(flow&1)
		f.sent(&flowcell.Packet{Flow: out, Seq: isn, Flags: flowcell.FlagSYN})
		una, next := isn, isn+1
		if !f.has(&out, isn) || f.acknowledged(&in, isn) || f.acknowledged(&in, isn+2) || !f.acknowledged(&in, isn+1) || f.has(&out, isn) {
			t.Fatalf("seed %d, flow %d: handshake from %d", seed, flow, isn)
		}
		una++
		for range 300 {
			switch rng.IntN(4) {
			case 0, 1:
				n := int32(rng.IntN(3000))
				f.sent(&flowcell.Packet{Flow: out, Seq: next, Payload: n, Flags: flowcell.FlagACK})
				next += uint32(n)
			case 2: // again
				f.sent(&flowcell.Packet{Flow: out, Seq: una, Payload: int32(min(next-una, 1000)), Flags: flowcell.FlagACK})
			default:
				ack := una + uint32(rng.IntN(int(next-una)+1))
				if !f.acknowledged(&in, ack) {
					t.Fatalf("seed %d, flow %d: %d is not believed of %d to %d", seed, flow, ack, una, next)
				}
				una = ack
			}
			for _, guess := range []uint32{una, next - 1, una - 1, next, rng.Uint32()} {
				if want := guess-una < next-una; f.has(&out, guess) != want {
					t.Fatalf("seed %d, flow %d: %d in flight is %v, %d to %d are", seed, flow, guess, !want, una, next)
				}
			}
			if f.acknowledged(&in, next+1) || f.acknowledged(&in, una-2<<20) {
				t.Fatalf("seed %d, flow %d: what was never sent is acknowledged", seed, flow)
			}
		}
		if other := (flowcell.FiveTuple{SrcPort: 999, DstPort: 80, Proto: flowcell.ProtoTCP}); f.has(&other, una) {
			t.Fatal("a flow that never was")
		}
	}
}

// The answer to a SYN at a closed port proves nothing: a reset is of no connection.
func TestFlights_resetsProveNothing(t *testing.T) {
	f := newFlights(1)
	f.on.Store(true)
	out := flowcell.FiveTuple{SrcPort: 9, DstPort: 999, Proto: flowcell.ProtoTCP}
	in := out.Reverse()
	f.sent(&flowcell.Packet{Flow: out, Flags: flowcell.FlagRST | flowcell.FlagACK})
	for _, ack := range []uint32{0, 1} {
		if f.acknowledged(&in, ack) {
			t.Errorf("%d is believed after a reset", ack)
		}
	}
}

func BenchmarkFlights(b *testing.B) {
	f := newFlights(1)
	f.on.Store(true)
	pkt := flowcell.Packet{Flow: flowcell.FiveTuple{DstPort: 80, Proto: flowcell.ProtoTCP}, Payload: 1448, Flags: flowcell.FlagACK}
	for i := 0; b.Loop(); i++ {
		pkt.Flow.SrcPort = uint16(i / 16 % 1000)
		f.sent(&pkt)
		pkt.Seq += 1448
		in := pkt.Flow.Reverse()
		f.acknowledged(&in, pkt.Seq)
	}
}
