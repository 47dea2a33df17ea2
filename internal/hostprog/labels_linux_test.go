package hostprog

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/resequencer"
)

// Connections of the kernel's TCP arrive by labels as they were sent, whichever policy
// the program carries out. Super-segments leave whole, and are counted as the segments
// that devices make of them. Switches pop labels in the very bytes that a packet socket
// shows, so the bytes do not show which path a packet took.
func TestSpray_kernelTCPByLabels(t *testing.T) {
	slowtest.System(t)
	kerneltest.NeedRoot(t)
	l, err := lab.Hold(t.Context(), lab.Config{Name: kerneltest.LabName("a"), Topology: kerneltest.Topology(t, "fat-tree:k=4"), Unlimited: true, SRv6: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for _, name := range []string{"ecmp", "presto", "rand", "luopan"} {
		t.Run(name, func(t *testing.T) {
			s := newSprayedBy(t, l, name, encap.CarrierSRv6)
			s.leaveRoom(t)
			s.gather(t)
			packets, got := s.carried(t, 4<<20)
			var want, sum Traffic
			whole := 0
			for _, p := range packets {
				segs, bytes := s.segmentsOf(p)
				want = Traffic{want.Packets + segs, want.Bytes + bytes}
				if len(p) > 1500 {
					whole++
				}
			}
			if whole < 20 {
				t.Errorf("%d super-segments in 4 MB", whole)
			}
			paths := 0
			for _, b := range got.Bounces {
				sum = Traffic{sum.Packets + b.Packets, sum.Bytes + b.Bytes}
				if b.Packets > 0 {
					paths++
				}
			}
			if got.Encapsulated != want.Packets || sum != want || got.TooLong+got.NoPath+got.Malformed+got.Refused != 0 {
				t.Errorf("counters %+v, want %+v", got, want)
			}
			if (paths == 1) != (name == "ecmp") {
				t.Errorf("%d paths taken", paths)
			}
		})
	}
}

// A connection that the program cuts leaves in flowcells, each by one path that was
// drawn for it, or by the one chosen, while others are chosen all the time; and a
// receiver believes the numbers.
func TestSpray_drawsForTheKernelsTCP(t *testing.T) {
	s := newSprayed(t, sprayLab(t), "luopan")
	cfg := s.config(t, "luopan")
	cfg.Cut = []netip.Addr{s.src.Addr}
	s.attach(t, cfg)
	s.oracle.cut = newCutOracle(cfg.Policy.Unit, cfg.Cut...)
	s.leaveRoom(t)
	s.gather(t)
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(500 * time.Microsecond):
			}
			// Valid until the next, or hardly at all.
			valid := time.Minute
			if i/4%2 == 1 {
				valid = time.Microsecond
			}
			if err := s.spray.Choose(rackOf(s.dst.Addr), i%4, valid); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	packets, st := s.carried(t, 16<<20)
	close(stop)
	<-done
	b := resequencer.New[int](resequencer.Config{Discipline: resequencer.Presto})
	steps := make(map[uint16]int)
	var order []int
	s.oracle.mtu = 1 << 17
	for i, p := range packets {
		segs, _ := s.segmentsOf(p)
		var seg flowcell.Packet
		if err := seg.Parse(p[s.overhead():]); err != nil {
			t.Fatal(err)
		}
		inner, way, _ := s.oracle.prepare(p[s.overhead():], int(segs), p)
		step := way.stepOf(inner, p)
		if step < 0 {
			t.Fatalf("packet %d: got\n%swant, by some path,\n%s", i, dump(p), dump(way.wrap(inner, 0)))
		}
		seg.MoreSegments = uint8(segs - 1)
		order = b.Push(&seg, i, time.Duration(i)*time.Microsecond, order)
		if seg.Payload == 0 {
			continue
		}
		cell := binary.BigEndian.Uint16(inner[4:]) >> flowcellShift
		if before, seen := steps[cell]; seen && before != step {
			t.Fatalf("packet %d: flowcell %d went by step %d and %d", i, cell, before, step)
		}
		steps[cell] = step
	}
	if r := b.Stats(); r.FlowsNumbered != 1 || r.FlowsUnnumbered != 0 || r.HeldPackets != 0 {
		t.Errorf("the receiver says %+v", r)
	}
	counts := make(map[int]int)
	for _, step := range steps {
		counts[step]++
	}
	if _, cells := s.oracle.cut.counts(); len(counts) != 4 || st.Flowcells != cells || st.Chosen == 0 || st.Chosen == cells {
		t.Errorf("flowcells by step %v; %+v, want %d flowcells, some of them chosen", counts, st, cells)
	}
}
