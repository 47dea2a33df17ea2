package hostprog

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// numberedSegment is a small TCP segment of the source's with an ID.
func (s *sprayed) numberedSegment(id uint16) []byte {
	return kerneltest.IPv4{ID: id, Frag: 0x4000, TTL: 64, Protocol: 6, Src: s.src.Addr, Dst: s.dst.Addr}.Bytes(
		append([]byte{0x12, 0x34, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0}, "payload"...))
}

// While tables are replaced every packet arrives, by the one table or the
// other, and what is sent after SetTopology by the new one.
func TestSpray_swapUnderLoad(t *testing.T) {
	l := sprayLab(t)
	s := newSprayed(t, l, "drb")
	s.gather(t)
	whole := l.Config.Topology
	// One core less: another order, of three.
	core, _ := whole.Lookup("3.1")
	less := whole.WithoutNode(core.ID)
	tables := []sprayTable{s.oracle.table, mustTable(t, less, s.src.ID, mustPolicy(t, "drb"))}

	const packets = 4000
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Microsecond):
			}
			if err := s.spray.SetTopology([]*topology.Topology{less, whole}[i%2]); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for id := range packets {
		s.out.Send(t, s.numberedSegment(uint16(id)))
	}
	close(stop)
	<-done
	used := make([]int, 2)
	for i, p := range s.arrived(t, packets) {
		var by []bool
		for _, table := range tables {
			o := s.oracle
			o.table = table
			want, _ := o.sent(s.numberedSegment(uint16(i)), 0)
			by = append(by, bytes.Equal(p, want))
		}
		switch {
		case !by[0] && !by[1]:
			t.Fatalf("packet %d went by neither table:\n%s", i, dump(p))
		case by[0] && !by[1]:
			used[0]++
		case by[1] && !by[0]:
			used[1]++
		}
	}
	if used[0] == 0 || used[1] == 0 {
		t.Errorf("tables used %v times: nothing was swapped", used)
	}

	for i, top := range []*topology.Topology{less, whole} {
		if err := s.spray.SetTopology(top); err != nil {
			t.Fatal(err)
		}
		s.oracle.table = tables[1-i]
		for id := range uint16(24) {
			s.check(t, "after the swap", s.numberedSegment(id))
		}
	}
}

// To a rack that is said to be cut off all paths are tried, as before.
func TestSpray_lastResort(t *testing.T) {
	l := sprayLab(t)
	s := newSprayed(t, l, "drb")
	whole := l.Config.Topology
	var down []topology.LinkID
	edge := whole.EdgeOf(s.dst.ID)
	for _, p := range whole.Ports(edge) {
		if p.Up {
			down = append(down, p.Link)
		}
	}
	cut := whole.Without(down...)
	if err := s.spray.SetTopology(cut); err != nil {
		t.Fatal(err)
	}
	s.oracle.table = mustTable(t, cut, s.src.ID, mustPolicy(t, "drb"))
	far := s.dst
	for i, host := range kerneltest.Hosts(whole)[1:] {
		s.dst = host
		s.check(t, host.Name, s.numberedSegment(uint16(i)))
	}
	s.dst = far
	if st := s.stats(t); st.NoPath != 0 {
		t.Errorf("%d packets without a path", st.NoPath)
	}
}

// The random rule uses all live paths about alike, for TCP alone.
func TestSpray_random(t *testing.T) {
	l := sprayLab(t)
	s := newSprayed(t, l, "rb")
	s.gather(t)
	way := s.oracle.table[rackOf(s.dst.Addr)]
	const packets = 2000
	for i := range packets {
		s.out.Send(t, s.numberedSegment(uint16(i)))
	}
	counts := make([]int, len(way.order))
	for i, p := range s.arrived(t, packets) {
		at := way.stepOf(s.numberedSegment(uint16(i)), p)
		if at < 0 {
			t.Fatalf("packet %d went by none of the paths:\n%s", i, dump(p))
		}
		counts[at]++
	}
	for at, n := range counts {
		// A quarter each; six standard deviations are 116.
		if n < packets/4-116 || n > packets/4+116 {
			t.Errorf("%d of %d packets by step %d", n, packets, at)
		}
	}
	for id := range uint16(8) {
		udp := s.numberedSegment(id)
		udp[9] = 17
		binary.BigEndian.PutUint16(udp[10:], 0)
		binary.BigEndian.PutUint16(udp[10:], ^kerneltest.OnesSum(udp[:20]))
		s.check(t, "UDP", udp)
	}
}
