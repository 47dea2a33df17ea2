package gro

import (
	"encoding/binary"
	"fmt"
	"testing"

	"weft/flowcell"
)

// train returns one of these packets, the last of which must have been
// reported as want.
func train(t *testing.T, want bool, packets ...packet) *Train {
	t.Helper()
	var tr Train
	tr.Start(packets[0].bytes(), packets[0].gsoSize)
	for i, p := range packets[1:] {
		last := i == len(packets)-2
		before := tr
		got := tr.Add(p.bytes(), p.gsoSize)
		if got != (want || !last) {
			t.Errorf("packet %d: continues %v", i+1, got)
		}
		if !got && tr != before {
			t.Errorf("packet %d is not added, but the train changes from\n%+v to\n%+v", i+1, before, tr)
		}
	}
	return &tr
}

func TestStart_forgetsTheTrainBefore(t *testing.T) {
	var zero Train
	if zero.Segments() != 0 || zero.MSS() != 0 || zero.HeaderLen() != 0 || zero.Add(data(4, 100).bytes(), 0) || zero.Finish(nil) {
		t.Errorf("the zero Train is not empty: %+v", zero)
	}
	p := data(4, 100)
	tr := train(t, true, p, p.after(100), p.after(100).after(100))
	if tr.Segments() != 3 || tr.MSS() != 100 || tr.HeaderLen() != 52 {
		t.Errorf("%d segments of %d behind %d", tr.Segments(), tr.MSS(), tr.HeaderLen())
	}
	q := data(6, 60)
	q.options = nil
	tr.Start(q.bytes(), 0)
	if tr.Segments() != 1 || tr.MSS() != 60 || tr.HeaderLen() != 60 || tr.Finish(q.bytes()) {
		t.Errorf("after Start: %+v", tr)
	}
	if !tr.Add(q.after(60).bytes(), 0) {
		t.Error("the second train does not go on")
	}
	tr.Start([]byte("noise"), 0)
	if tr.Segments() != 1 || tr.MSS() != 0 || tr.HeaderLen() != 0 || tr.Finish(nil) {
		t.Errorf("after Start with noise: %+v", tr)
	}
	if tr.Add(q.after(60).after(60).bytes(), 0) {
		t.Error("noise is continued")
	}
}

// What can be merged with nothing is neither continued nor does it continue.
func TestAdd_mergesOnlyPlainTCPData(t *testing.T) {
	const v4, v6 = 1, 2
	for _, c := range []struct {
		name     string
		versions int
		edit     func(*packet)
		want     bool
	}{
		{"plain", v4 | v6, func(p *packet) {}, true},
		{"without TCP options", v4 | v6, func(p *packet) { p.options = nil }, true},
		{"40 bytes of TCP options", v4 | v6, func(p *packet) { p.options = make([]byte, 40) }, true},
		{"without DF", v4, func(p *packet) { p.fragment = 0 }, true},
		{"without ACK", v4 | v6, func(p *packet) { p.flags = 0 }, true},
		{"ECE", v4 | v6, func(p *packet) { p.flags |= flowcell.FlagECE }, true},
		{"CE", v4 | v6, func(p *packet) { p.tos |= 3 }, true},
		{"IP options", v4, func(p *packet) { p.ipOptions = []byte{1, 1, 1, 0} }, false},
		{"extension header", v6, func(p *packet) { p.ipOptions = make([]byte, 8) }, false},
		{"BIG TCP's jumbogram", v6, func(p *packet) { p.ipOptions = []byte{6, 0, 0xc2, 4, 0, 1, 0x86, 0xbc} }, false},
		{"first fragment", v4, func(p *packet) { p.fragment = 0x2000 }, false},
		{"other fragment", v4, func(p *packet) { p.fragment = 185 }, false},
		{"reserved bit", v4, func(p *packet) { p.fragment |= 0x8000 }, false},
		{"UDP", v4 | v6, func(p *packet) { p.proto = flowcell.ProtoUDP }, false},
		{"pure ACK", v4 | v6, func(p *packet) { p.payload = nil }, false},
		{"SYN", v4 | v6, func(p *packet) { p.flags |= flowcell.FlagSYN }, false},
		{"RST", v4 | v6, func(p *packet) { p.flags |= flowcell.FlagRST }, false},
		{"URG", v4 | v6, func(p *packet) { p.flags |= flowcell.FlagURG }, false},
		{"CWR", v4 | v6, func(p *packet) { p.flags |= flowcell.FlagCWR }, false},
	} {
		for _, version := range []int{4, 6} {
			if c.versions&(version/2-1) == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s, IPv%d", c.name, version), func(t *testing.T) {
				p := data(version, 100)
				c.edit(&p)
				train(t, c.want, p, p.after(len(p.payload)))
				if !c.want {
					train(t, false, data(version, 100), func() packet {
						q := data(version, 100).after(100)
						c.edit(&q)
						return q
					}())
				}
			})
		}
	}
}

func TestStart_takesAnyDataOffset(t *testing.T) {
	for _, version := range []int{4, 6} {
		p := data(version, 100)
		for words := range 16 {
			first, second := p.bytes(), p.after(100).bytes()
			at := p.networkHeader() + 12
			first[at] = byte(words) << 4
			second[at] = first[at]
			seq := binary.BigEndian.Uint32(first[at-8:])
			whole := len(first) - p.networkHeader()
			binary.BigEndian.PutUint32(second[at-8:], seq+uint32(whole-4*words))
			copy(second[at+8:at+48], first[at+8:at+48]) // what may be options
			var tr Train
			tr.Start(first, 0)
			if got := tr.Add(second, 0); got != (words >= 5) {
				t.Errorf("IPv%d, data offset %d: continues %v", version, words, got)
			}
		}
	}
}

// The second packet differs from the first in one thing.
func TestAdd_comparesFields(t *testing.T) {
	const v4, v6 = 1, 2
	for _, c := range []struct {
		name     string
		versions int
		edit     func(*packet)
		want     bool
	}{
		{"nothing", v4 | v6, func(p *packet) {}, true},
		{"IPv4 ID", v4, func(p *packet) { p.id += 100 }, true},
		{"flow label, lower bits", v6, func(p *packet) { p.id += 100 }, true},
		{"flow label, upper bits", v6, func(p *packet) { p.label++ }, false},
		{"source", v4 | v6, func(p *packet) { p.src++ }, false},
		{"destination", v4 | v6, func(p *packet) { p.dst++ }, false},
		{"source port", v4 | v6, func(p *packet) { p.ports[0]++ }, false},
		{"destination port", v4 | v6, func(p *packet) { p.ports[1]++ }, false},
		{"TTL", v4 | v6, func(p *packet) { p.ttl-- }, false},
		{"DF", v4, func(p *packet) { p.fragment ^= 0x4000 }, false},
		{"DSCP", v4 | v6, func(p *packet) { p.tos ^= 4 }, false},
		{"ECN codepoint", v4 | v6, func(p *packet) { p.tos ^= 1 }, false},
		{"version", v4 | v6, func(p *packet) { p.version ^= 2 }, false},
		{"acknowledgement", v4 | v6, func(p *packet) { p.ack++ }, false},
		{"window", v4 | v6, func(p *packet) { p.window-- }, false},
		{"ECE", v4 | v6, func(p *packet) { p.flags ^= flowcell.FlagECE }, false},
		{"ACK", v4 | v6, func(p *packet) { p.flags ^= flowcell.FlagACK }, false},
		{"AE", v4 | v6, func(p *packet) { p.reserved ^= 1 }, false},
		{"reserved bits", v4 | v6, func(p *packet) { p.reserved ^= 8 }, false},
		{"urgent pointer", v4 | v6, func(p *packet) { p.urgent++ }, false},
		{"timestamp", v4 | v6, func(p *packet) {
			p.options = append([]byte(nil), p.options...)
			p.options[7]++
		}, false},
		{"no options", v4 | v6, func(p *packet) { p.options = nil }, false},
		{"more options", v4 | v6, func(p *packet) { p.options = append(p.options[:12:12], 1, 1, 1, 1) }, false},
		{"a gap", v4 | v6, func(p *packet) { p.seq++ }, false},
		{"an overlap", v4 | v6, func(p *packet) { p.seq-- }, false},
		{"a copy", v4 | v6, func(p *packet) { p.seq -= 100 }, false},
		{"smaller", v4 | v6, func(p *packet) { p.payload = p.payload[:99] }, true},
		{"larger", v4 | v6, func(p *packet) { p.payload = make([]byte, 101) }, false},
		{"PSH", v4 | v6, func(p *packet) { p.flags |= flowcell.FlagPSH }, true},
		{"FIN", v4 | v6, func(p *packet) { p.flags |= flowcell.FlagFIN }, true},
		{"FIN without payload", v4 | v6, func(p *packet) { p.flags |= flowcell.FlagFIN; p.payload = nil }, false},
	} {
		for _, version := range []int{4, 6} {
			if c.versions&(version/2-1) == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s, IPv%d", c.name, version), func(t *testing.T) {
				p := data(version, 100)
				second := p.after(100)
				c.edit(&second)
				train(t, c.want, p, second)
			})
		}
	}
}

// Nothing escapes the comparison: every bit of the second packet's headers is
// flipped in turn.
func TestAdd_everyHeaderBitCounts(t *testing.T) {
	for _, version := range []int{4, 6} {
		first := data(version, 100)
		whole := first.after(100).bytes()
		ip := first.networkHeader()
		free := map[int]byte{ // bits that may differ, by byte
			ip + 13: flowcell.FlagPSH | flowcell.FlagFIN,
			ip + 16: 0xff, ip + 17: 0xff, // TCP checksum
		}
		lengthAt := 2
		if version == 4 {
			free[4], free[5] = 0xff, 0xff   // ID
			free[10], free[11] = 0xff, 0xff // header checksum
		} else {
			lengthAt = 4
			free[2], free[3] = 0xff, 0xff // flow label
		}
		for bit := range 8 * (ip + tcpHeader + len(first.options)) {
			i, mask := bit/8, byte(1)<<(bit%8)
			b := append([]byte(nil), whole...)
			b[i] ^= mask
			want := free[i]&mask != 0
			if i == lengthAt || i == lengthAt+1 {
				was := binary.BigEndian.Uint16(whole[lengthAt:])
				is := binary.BigEndian.Uint16(b[lengthAt:])
				want = is < was && is > was-100
			}
			var tr Train
			tr.Start(first.bytes(), 0)
			if got := tr.Add(b, 0); got != want {
				t.Errorf("IPv%d, byte %d, bit %02x: continues %v, want %v", version, i, mask, got, want)
			}
		}
	}
}

func TestAdd_nothingFollowsTheLast(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*packet)
	}{
		{"PSH", func(p *packet) { p.flags |= flowcell.FlagPSH }},
		{"FIN", func(p *packet) { p.flags |= flowcell.FlagFIN }},
		{"smaller", func(p *packet) { p.payload = p.payload[:99] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := data(4, 100)
			second := p.after(100)
			c.edit(&second)
			third := second.after(len(second.payload))
			train(t, false, p, second, third)
			third.flags = p.flags
			train(t, false, p, second, third)
		})
	}
	for _, flag := range []uint8{flowcell.FlagPSH, flowcell.FlagFIN} {
		p := data(4, 100)
		p.flags |= flag
		second := p.after(100)
		train(t, false, p, second)
		second.flags = flowcell.FlagACK
		train(t, false, p, second)
	}
}

func TestAdd_upToMaxLength(t *testing.T) {
	for _, version := range []int{4, 6} {
		for over := range 2 {
			p := data(version, 1000)
			packets := []packet{p}
			left := MaxLength - p.networkHeader() - tcpHeader - len(timestamps) - 1000
			for left >= 1000 {
				p = p.after(1000)
				packets = append(packets, p)
				left -= 1000
			}
			if left == 0 {
				t.Fatal("the last must be smaller")
			}
			train(t, over == 0, append(packets, p.after(left+over))...)
		}
	}
	// One packet is longer than that only in IPv6, and is left alone.
	p := data(6, 65535-tcpHeader-len(timestamps))
	train(t, false, p, p.after(1))
}

func TestAdd_superSegments(t *testing.T) {
	super := func(p packet, n, gsoSize int) packet {
		p = p.after(n)
		p.gsoSize = gsoSize
		return p
	}
	begin := data(4, 0)
	single := begin.after(100)
	for _, c := range []struct {
		name    string
		packets []packet
		want    bool
		mss, n  int
	}{
		{"two of one MSS", []packet{super(begin, 300, 100), super(super(begin, 300, 100), 200, 100)}, true, 100, 5},
		{"after a segment", []packet{single, super(single, 300, 100)}, true, 100, 4},
		{"before a segment", []packet{super(begin, 300, 100), super(super(begin, 300, 100), 100, 0)}, true, 100, 4},
		{"before a smaller one", []packet{super(begin, 300, 100), super(super(begin, 300, 100), 7, 0)}, true, 100, 4},
		{"before a larger segment", []packet{super(begin, 300, 100), super(super(begin, 300, 100), 101, 0)}, false, 100, 3},
		{"a remainder is the last", []packet{super(begin, 250, 100), super(super(begin, 250, 100), 100, 0)}, false, 100, 3},
		{"with a remainder", []packet{single, super(single, 250, 100)}, true, 100, 4},
		{"nothing after a remainder", []packet{single, super(single, 250, 100), super(super(single, 250, 100), 100, 0)}, false, 100, 4},
		{"larger MSS", []packet{super(begin, 300, 100), super(super(begin, 300, 100), 300, 150)}, false, 100, 3},
		{"smaller MSS", []packet{super(begin, 300, 100), super(super(begin, 300, 100), 300, 50)}, false, 100, 3},
		{"smaller MSS in one segment's size", []packet{single, super(single, 100, 50)}, false, 100, 1},
		{"size not known", []packet{super(begin, 300, 0), super(super(begin, 300, 0), 300, 0)}, true, 300, 2},
		{"one segment with its size", []packet{super(begin, 100, 100), super(single, 100, 100)}, true, 100, 2},
		{"size above the payload", []packet{super(begin, 100, 1448), super(single, 100, 1448)}, true, 100, 2},
		{"negative size", []packet{super(begin, 100, -1), super(single, 100, -1)}, true, 100, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if tr := train(t, c.want, c.packets...); tr.MSS() != c.mss || tr.Segments() != c.n {
				t.Errorf("%d segments of %d, want %d of %d", tr.Segments(), tr.MSS(), c.n, c.mss)
			}
		})
	}
}

// The payload may be elsewhere; headers that are cut off make no train.
func TestAdd_needsHeadersOnly(t *testing.T) {
	for _, version := range []int{4, 6} {
		p := data(version, 100)
		size := p.networkHeader() + tcpHeader + len(p.options)
		first, second := p.bytes(), p.after(100).bytes()
		for n := range len(first) {
			want := n >= size
			var tr Train
			tr.Start(first[:n:n], 0)
			if got := tr.Add(second, 0); got != want {
				t.Errorf("IPv%d, first of %d bytes: %v", version, n, got)
			}
			tr.Start(first, 0)
			if got := tr.Add(second[:n:n], 0); got != want {
				t.Errorf("IPv%d, second of %d bytes: %v", version, n, got)
			}
		}
	}
}

func TestTrain_allocatesNothing(t *testing.T) {
	p := data(6, 100)
	first, second := p.bytes(), p.after(100).bytes()
	var tr Train
	if n := testing.AllocsPerRun(100, func() {
		tr.Start(first, 0)
		if !tr.Add(second, 0) || !tr.Finish(first) {
			t.Fatal("not merged")
		}
		binary.BigEndian.PutUint16(first[4:], uint16(len(first)-ipv6Header))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// One operation is a train of 45 packets, Start and Finish included.
func BenchmarkTrain_add(b *testing.B) {
	for _, version := range []int{4, 6} {
		b.Run(fmt.Sprintf("IPv%d", version), func(b *testing.B) {
			var packets [][]byte
			p := data(version, 0)
			for range 45 {
				p = p.after(1448)
				packets = append(packets, p.bytes())
			}
			head := append([]byte(nil), packets[0]...)
			var tr Train
			b.ReportAllocs()
			for b.Loop() {
				tr.Start(packets[0], 0)
				for _, p := range packets[1:] {
					if !tr.Add(p, 0) {
						b.Fatal("not merged")
					}
				}
				tr.Finish(head)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(packets)), "ns/packet")
		})
	}
}
