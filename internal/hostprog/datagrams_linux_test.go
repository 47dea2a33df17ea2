package hostprog

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"weft/flowcell"
	"weft/internal/kernel/kerneltest"
)

// datagramTo is a datagram with a number.
func datagramTo(from netip.Addr, port uint16, place flowcell.Place) []byte {
	udp := make([]byte, 8+20)
	binary.BigEndian.PutUint16(udp, port)
	binary.BigEndian.PutUint16(udp[2:], 443)
	udp[5] = byte(len(udp))
	return kerneltest.IPv4{ID: uint16(place), Frag: 0x4000, TTL: 64, Protocol: 17, Src: from, Dst: orderTo}.Bytes(udp)
}

func tupleOf(packet []byte) *flowcell.FiveTuple {
	var p flowcell.Packet
	if err := p.Parse(packet); err != nil {
		panic(err)
	}
	return &p.Flow
}

// The program and a model of it agree on datagrams that are disturbed at random.
func TestOrderDatagrams_equalTheirModel(t *testing.T) {
	o := newOrderTest(t)
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	type model struct {
		known              bool
		next               uint32
		far                int
		diverted, returned uint64
	}
	flows := make([]model, 3)
	for i := range 4000 {
		at := rng.IntN(len(flows))
		m := &flows[at]
		number := m.next
		switch rng.IntN(40) {
		case 0, 1, 2:
			number += uint32(rng.IntN(7) - 3)
		case 3:
			number += uint32(rng.IntN(4096) - 2048)
		case 4:
			number -= 700 // one that has begun anew
		}
		if m.far > 0 && rng.IntN(2) == 0 {
			number = m.next - 700
		}
		p := flowcell.MakePlace(number, uint8(rng.IntN(4)))
		ahead, want := int32(p.After(m.next)-m.next), false
		switch {
		case !m.known:
			m.known, m.next = true, number&0xfff+1
		case m.diverted != m.returned:
			want = true
		case ahead < -512:
			if m.far++; m.far == 4 {
				m.far, m.next = 0, number&0xfff+1
			}
		case ahead > 0:
			m.far, want = 0, true
		default:
			if m.far = 0; ahead == 0 {
				m.next++
			}
		}
		if want {
			m.diverted++
		}
		packet := datagramTo(orderFrom, uint16(9000+at), p)
		if got := o.arrive(t, packet); got != want {
			t.Fatalf("seed %d, packet %d, %d ahead of %+v: diverted %v", seed, i, ahead, *m, got)
		}
		n, ok := o.order.Find(tupleOf(packet))
		if !ok || o.order.Next(n) != m.next || o.order.Diverted(n) != m.diverted {
			t.Fatalf("seed %d, packet %d: %v, next %d, %d diverted; the model has %+v", seed, i, ok, o.order.Next(n), o.order.Diverted(n), *m)
		}
		if m.diverted != m.returned && rng.IntN(3) == 0 {
			m.next, m.returned = m.next+uint32(rng.IntN(4)), m.diverted
			o.order.Return(n, m.next, m.returned)
		}
	}
	if st := o.stats(t); st.Datagrams != 4000 || st.Missed+st.Crowded+st.PassedDead != 0 {
		t.Errorf("%+v", st)
	}
	o.read(t)
}

// Tracks are known after a while, and none are where there are too many. TCP of the same
// addresses and ports is another flow.
func TestOrderDatagrams_tracks(t *testing.T) {
	o := newOrderTest(t)
	send := func(at uint32, port uint16, track uint8) int {
		packet := datagramTo(orderFrom, port, flowcell.MakePlace(at, track))
		if o.arrive(t, packet) {
			t.Fatalf("%d: diverted", at)
		}
		n, ok := o.order.Find(tupleOf(packet))
		if !ok {
			t.Fatal("the flow is not known")
		}
		return n
	}
	for at := uint32(4000); at < 4096+300; at++ {
		// Those of the last few; not yet, and when the numbers have begun again.
		want := uint16(0b1111)
		if at < 4000+64 || at >= 4096 && at < 4096+128+63 {
			want = 0
		}
		n := send(at, 9100, uint8(at%4))
		if got := o.order.Tracks(n); got != want {
			t.Fatalf("at %d: tracks %b, want %b", at, got, want)
		}
	}
	for at := range uint32(100) {
		if n := send(1000+at, 9101, flowcell.NoTrack); o.order.Tracks(n) != 0 {
			t.Fatalf("more tracks than can be told apart: %b", o.order.Tracks(n))
		}
	}
	tcp := orderSegment{port: 9100, seq: 77, payload: 10}
	binary.BigEndian.PutUint16(tcp.bytes()[22:], 443)
	if o.arrive(t, tcp.bytes()) {
		t.Error("TCP that begins: diverted")
	}
}

// Only listed datagrams that have a number are anybody's concern.
func TestOrderDatagrams_leaveAlone(t *testing.T) {
	o := newOrderTest(t)
	of := func(at uint32, edit func([]byte)) []byte {
		p := datagramTo(orderFrom, 9200, flowcell.MakePlace(at, 0))
		edit(p)
		p[10], p[11] = 0, 0
		binary.BigEndian.PutUint16(p[10:], ^kerneltest.OnesSum(p[:20]))
		return p
	}
	for name, edit := range map[string]func([]byte){
		"without DF":  func(p []byte) { p[6] = 0 },
		"a fragment":  func(p []byte) { p[6] = 0x60 },
		"other ports": func(p []byte) { p[22], p[23] = 0, 53 },
		"another's":   func(p []byte) { p[19]++ },
		"too short":   func(p []byte) { p[3] = 24 },
	} {
		for _, at := range []uint32{0, 10} {
			if o.arrive(t, of(at, edit)) {
				t.Errorf("%s: diverted", name)
			}
		}
	}
	if st := o.stats(t); st.Datagrams != 0 {
		t.Errorf("%d datagrams were looked at", st.Datagrams)
	}
	listed := func(p []byte) { copy(p[12:], []byte{192, 0, 2, 7}); p[23] = 54 }
	if o.arrive(t, of(0, listed)) || !o.arrive(t, of(10, listed)) {
		t.Error("a listed host's: not put in order")
	}
}

// Datagrams take all paths in turns, as many bytes by each, and count up; nothing else of
// them changes.
func TestSprayDatagrams(t *testing.T) {
	l := sprayLab(t)
	for _, name := range []string{"presto", "drb", "ecmp"} {
		s := newSprayedBy(t, l, name, 0, func(c *SprayConfig) { c.Require, c.Datagrams = true, Datagrams{Ports: []uint16{443}} })
		bytes, before := make(map[string]int), uint16(0)
		tracks := make(map[uint8]string)
		for i := range 400 {
			udp := make([]byte, 8+20)
			if i%2 == 0 {
				udp = make([]byte, 8+1200) // long and short ones in turns
			}
			binary.BigEndian.PutUint16(udp, 9000)
			binary.BigEndian.PutUint16(udp[2:], 443)
			binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
			sent := kerneltest.IPv4{ID: 7, Frag: 0x4000, TTL: 33, Protocol: 17, Src: s.src.Addr, Dst: s.dst.Addr}.Bytes(udp)
			s.send(t, sent, false)
			got := s.receive(t)
			inner := got[20:]
			place := flowcell.Place(binary.BigEndian.Uint16(inner[4:]))
			if i > 0 && uint16(place)&0xfff != (before+1)&0xfff {
				t.Fatalf("%s: %x comes behind %x", name, uint16(place), before)
			}
			before = uint16(place)
			core := string(got[16:20])
			if track := uint8(place >> 12); tracks[track] == "" {
				tracks[track] = core
			} else if tracks[track] != core {
				t.Fatalf("%s: track %d goes by two paths", name, track)
			}
			bytes[core] += len(inner)
			flowcell.Number(7).Stamp(inner) // as it was
			if string(inner) != string(sent) {
				t.Fatalf("%s: sent\n%sgot\n%s", name, dump(sent), dump(inner))
			}
		}
		if len(bytes) != 4 || len(tracks) != 4 {
			t.Errorf("%s: %d paths, %d tracks", name, len(bytes), len(tracks))
		}
		for core, n := range bytes {
			if most := 400 * 630 / 4; n < most-2600 || n > most+3600 {
				t.Errorf("%s: %d bytes by %v, of %d", name, n, []byte(core), most)
			}
		}
		if st := s.stats(t); st.Datagrams != 400 || st.DatagramFlows != 1 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}
