package resequencer

import (
	"testing"
	"time"

	"weft/flowcell"
	"weft/internal/slowtest"
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
func (v victim) disorder(c Config) (bytes int, s Stats) {
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

// holdTime is what arrives of a victim within the longest hold time.
const holdTime = 1448 * int(DefaultHold/(10*us))

// What somebody sends blindly in a flow's name, of whatever kind, moves no more out
// of order than arrives within a hold time, and what is far from the flow next to
// nothing.
func TestPush_forgeriesDoNotMoveAFlow(t *testing.T) {
	if clean, _ := (victim{segments: 25_000}).disorder(Config{}); clean != 0 {
		t.Fatalf("%d bytes out of order without a forgery", clean)
	}
	cells := []int{0, 3, -400}
	if slowtest.Small() {
		cells = cells[:1]
	}
	for _, distance := range []int{
		64 << 20, 40 << 20, 16 << 20, 4 << 20, 2 << 20, 1 << 20, 100_000,
		-100_000, -1 << 20, -16 << 20, -64 << 20, -65 << 20, 65 << 20, 1 << 30,
	} {
		most := holdTime
		if distance > holdTime || distance < 0 {
			most = 400 * 1448 // what is on its way by the slower paths, and what was held
		}
		worst := 0
		for _, cell := range cells {
			for flags, name := range map[uint8]string{0: "data", flowcell.FlagFIN: "FIN", flowcell.FlagSYN: "SYN", flowcell.FlagRST: "RST"} {
				for _, times := range []int{1, 2, leaps, 20} {
					v := victim{segments: 25_000, from: 5_000}
					for range times {
						v.forge = append(v.forge, forged(distance, cell, flags))
					}
					bytes, s := v.disorder(Config{})
					worst = max(worst, bytes)
					if bytes > most {
						t.Errorf("%s at %+d, flowcell %+d, %d times: %d bytes of %d out of order, more than %d\n%+v",
							name, distance, cell, times, bytes, 1448*v.segments, most, s)
					}
				}
			}
		}
		t.Logf("at %+d: at most %d bytes out of order", distance, worst)
	}
}

// Each of many forgeries, which come one by one and far away, moves nothing at all.
func TestPush_singleForgeriesMoveNothing(t *testing.T) {
	for _, distance := range []int{64 << 20, 2 << 20, -2 << 20, -64 << 20, 1 << 30} {
		v := victim{segments: 50_000, from: 1000, every: 50, forge: []func(uint32, flowcell.Packet) flowcell.Packet{forged(distance, 0, 0)}}
		if bytes, s := v.disorder(Config{}); bytes != 0 || s.Stray < 900 || s.Leaps != 0 {
			t.Errorf("at %+d: %d bytes out of order\n%+v", distance, bytes, s)
		}
	}
}

// A number that is forged behind the flow makes its sender unbelieved at most, and
// then order is kept by sequence.
func TestPush_forgedNumbersCostNoOrder(t *testing.T) {
	v := victim{segments: 50_000, from: 1000, every: 1}
	v.forge = append(v.forge, func(next uint32, s flowcell.Packet) flowcell.Packet {
		s.Seq = next - 20*1448
		s.ID &^= 63
		return s
	})
	bytes, s := v.disorder(Config{})
	if bytes != 0 || s.FlowsUnnumbered == 0 {
		t.Errorf("%d bytes out of order\n%+v", bytes, s)
	}
}

// What no forger does: a flow is elsewhere, since a burst was lost or nothing of it
// was seen for a while. It costs no more than a few segments, wherever that is and
// whether paths differ or not.
func TestPush_leapsWithItsSender(t *testing.T) {
	for _, leap := range []uint32{100_000, 1 << 20, 5 << 20, 64 << 20, 1 << 30, 1<<31 + 5, 1<<32 - 64<<20, 1<<32 - 1<<20} {
		list := fabric{seed: 2, segments: 20_000, paths: []time.Duration{0, 100 * us, 200 * us, 300 * us}, cell: 45, id: "numbered"}.send()
		b := New[int](Config{})
		left, held := 0, 0
		for i, a := range list {
			if a.s.Seq-list[0].s.Seq > 10_000*100 {
				a.s.Seq += leap
			}
			for at, ok := b.NextDeadline(); ok && at <= a.at; at, ok = b.NextDeadline() {
				left += len(b.Expire(at, nil))
			}
			left += len(b.Push(&a.s, i, a.at, nil))
			held = max(held, b.Stats().HeldPackets)
		}
		left += len(b.Flush(nil))
		s := b.Stats()
		if left != len(list) || s.DeliveredOutOfOrder > 300 || s.Stray > 200 || s.TimedOut > 1200 {
			t.Errorf("by %d: %d of %d delivered\n%+v", leap, left, len(list), s)
		}
	}
}

// A window of 64 MB, of which a burst is lost, and what was lost sent again.
func TestPush_largeWindowLosesABurst(t *testing.T) {
	b := New[int](Config{FlowBytes: 128 << 20, PeerBytes: 128 << 20, TotalBytes: 128 << 20,
		FlowPackets: 1 << 17, PeerPackets: 1 << 17, TotalPackets: 1 << 17})
	const size = 8948 // 64 Gbit/s: one in 1.12 µs
	at, now, out := 0, time.Duration(0), 0
	segment := func(n int) {
		now += 1120
		s := flowcell.Packet{Flow: tuple(1), Seq: uint32(n * size), Payload: size, Length: size + 40, Flags: flowcell.FlagACK}
		out += len(b.Expire(now, nil)) + len(b.Push(&s, n, now, nil))
	}
	for ; at < 30_000; at++ {
		segment(at)
	}
	const lost = 5000 // 45 MB
	for at += lost; at < 40_000; at++ {
		segment(at)
	}
	for n := 30_000; n < 30_000+lost; n++ {
		segment(n)
	}
	for ; at < 80_000; at++ {
		segment(at)
	}
	s := b.Stats()
	if out != 80_000 || s.HeldPackets != 0 || s.Leaps > 4 || s.Stray > 16 || s.InOrder < 60_000 {
		t.Errorf("%d delivered\n%+v", out, s)
	}
}
