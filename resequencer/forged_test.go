package resequencer

import (
	"fmt"
	"testing"
	"time"

	"weft/flowcell"
)

// victim is a flow at 1.16 Gbit/s over four paths of which each is slower than the
// last, and what somebody else sends in its name while it goes on.
type victim struct {
	segments int
	from     int // of the segments the one before which the forgeries come
	forge    []func(next uint32, now flowcell.Packet) flowcell.Packet
	every    int // forgeries come again after so many segments; 0: once
}

// disorder is how many of the flow's own bytes are delivered behind later ones.
func (v victim) disorder(t *testing.T, c Config) (bytes int, s Stats) {
	t.Helper()
	list := fabric{seed: 1, segments: v.segments, paths: []time.Duration{0, 100 * us, 200 * us, 300 * us}, cell: 45, id: "numbered"}.send()
	b := New[int](c)
	const payload = 1448
	var out []int
	real := make([]flowcell.Packet, len(list))
	highest, high := uint32(0), false
	deliver := func() {
		for _, n := range out {
			if n < 0 {
				continue
			}
			end := real[n].Seq + uint32(real[n].Payload)
			if !high || ahead(end, highest) > 0 {
				highest, high = end, true
			} else {
				bytes += int(real[n].Payload)
			}
		}
		out = out[:0]
	}
	for i, a := range list {
		// The harness sends 100 bytes in 10 µs.
		a.s.Seq = list[0].s.Seq + 1 + (a.s.Seq-list[0].s.Seq-1)/100*payload
		if i > 0 {
			a.s.Payload, a.s.Length = payload, payload+40
		}
		if i == 0 {
			a.s.Seq = list[0].s.Seq
		}
		real[i] = a.s
		for at, ok := b.NextDeadline(); ok && at <= a.at; at, ok = b.NextDeadline() {
			out = b.Expire(at, out)
			deliver()
		}
		if i == v.from || v.every > 0 && i > v.from && (i-v.from)%v.every == 0 {
			for _, forge := range v.forge {
				s := forge(highest, a.s)
				out = b.Push(&s, -1, a.at, out)
				deliver()
			}
		}
		out = b.Push(&a.s, i, a.at, out)
		deliver()
	}
	out = b.Flush(out)
	deliver()
	return bytes, b.Stats()
}

// forged returns one that is so far ahead of what the flow's receiver has, with
// the number of a flowcell so far ahead of the latest, in segments of a size.
func forged(distance int, cells int, flags uint8) func(uint32, flowcell.Packet) flowcell.Packet {
	return func(next uint32, s flowcell.Packet) flowcell.Packet {
		s.Seq = next + uint32(int32(distance))
		s.ID += uint16(cells << 6)
		s.Flags |= flags
		return s
	}
}

// One that is in nobody's way to send, without knowing where the flow is, moves no
// more of it out of order than arrives within a hold time, which is 1.45 MB.
func TestPush_forgeriesDoNotMoveAFlow(t *testing.T) {
	const held = 1448 * int(DefaultHold/(10*us))
	clean, _ := victim{segments: 100_000}.disorder(t, Config{})
	if clean != 0 {
		t.Fatalf("%d bytes out of order without a forgery", clean)
	}
	type list = []func(uint32, flowcell.Packet) flowcell.Packet
	for _, distance := range []int{64 << 20, 63 << 20, 40 << 20, 16 << 20, 4 << 20, 1 << 20, 100_000, -100_000, -1 << 20, -16 << 20, -64 << 20, -65 << 20, 65 << 20, 1 << 30} {
		for _, cells := range []int{0, 1, -1, 3, -400, 400} {
			for flags, name := range map[uint8]string{0: "data", flowcell.FlagFIN: "FIN", flowcell.FlagSYN: "SYN", flowcell.FlagRST: "RST"} {
				for _, times := range []int{1, 2, 4, 20} {
					v := victim{segments: 100_000, from: 20_000}
					for range times {
						v.forge = append(v.forge, forged(distance, cells, flags))
					}
					if bytes, s := v.disorder(t, Config{}); bytes > held {
						t.Errorf("%s at %+d, flowcell %+d, %d times: %d bytes of %d out of order, more than %d\n%+v",
							name, distance, cells, times, bytes, 1448*v.segments, held, s)
					}
				}
			}
			if testing.Short() {
				break
			}
		}
	}
	_ = list{}
	_ = fmt.Sprint
}
