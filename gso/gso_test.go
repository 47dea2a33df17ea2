package gso_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"weft/flowcell"
	"weft/gso"
	"weft/resequencer/gro"
)

// ones adds up 16-bit words, the obvious way.
func ones(b []byte, sum uint32) uint16 {
	for i := 0; i < len(b); i += 2 {
		w := uint32(b[i]) << 8
		if i+1 < len(b) {
			w |= uint32(b[i+1])
		}
		sum += w
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// packet is a super-segment of IPv4 or IPv6 with right checksums.
func packet(version, payload int, flags uint8, options int) []byte {
	ip := 20
	if version == 6 {
		ip = 40
	}
	b := make([]byte, ip+20+options+payload)
	for i := range b[ip+20+options:] {
		b[ip+20+options+i] = byte(i * 7)
	}
	if version == 6 {
		b[0], b[6], b[7] = 0x60, flowcell.ProtoTCP, 64
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
		b[8], b[23], b[24], b[39] = 0xfd, 1, 0xfd, 2
	} else {
		copy(b, "\x45\x02\x00\x00\x12\x40\x40\x00\x40\x06\x00\x00\x0a\x00\x00\x02\x0a\x03\x01\x03")
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		binary.BigEndian.PutUint16(b[10:], ^ones(b[:20], 0))
	}
	tcp := b[ip:]
	copy(tcp, "\x12\x34\x00\x50\xff\xff\xf0\x00\x01\x02\x03\x04")
	tcp[12], tcp[13] = uint8(5+options/4)<<4, flags
	for i := range options {
		tcp[20+i] = 1
	}
	binary.BigEndian.PutUint16(tcp[16:], ^ones(tcp, pseudo(b, ip)))
	return b
}

func pseudo(b []byte, ip int) uint32 {
	addresses := b[12:20]
	if ip == 40 {
		addresses = b[8:40]
	}
	return uint32(ones(addresses, uint32(flowcell.ProtoTCP+len(b)-ip)))
}

// parts lays b out in several slices, the first with all headers.
func parts(b []byte, sizes ...int) (p [][]byte) {
	for _, n := range sizes {
		n = min(n, len(b))
		p, b = append(p, b[:n]), b[n:]
	}
	return append(p, b)
}

func cut(t testing.TB, p [][]byte, mss int, c gso.Checksum) (all [][]byte) {
	t.Helper()
	var s gso.Segmenter
	if err := s.Start(p, mss, c); err != nil {
		t.Fatal(err)
	}
	left := s.Left()
	for {
		buf := make([]byte, 1<<16)
		n := s.Next(buf)
		if n == 0 {
			break
		}
		all = append(all, buf[:n])
	}
	if len(all) != left {
		t.Fatalf("%d segments, %d were announced", len(all), left)
	}
	return all
}

const flags = flowcell.FlagACK | flowcell.FlagPSH | flowcell.FlagFIN | flowcell.FlagECE | flowcell.FlagCWR

func TestSegmenter_makesWhatAKernelMakes(t *testing.T) {
	for _, version := range []int{4, 6} {
		for _, options := range []int{0, 12, 40} {
			b := packet(version, 2500, flags, options)
			ip := len(b) - 2500 - 20 - options
			head := ip + 20 + options
			for i, p := range cut(t, parts(b, head+3, 700, 0, 1), 1000, gso.Complete) {
				size := []int{1000, 1000, 500}[i]
				if len(p) != head+size || !bytes.Equal(p[head:], b[head+1000*i:][:size]) {
					t.Fatalf("segment %d of %d bytes", i, len(p))
				}
				tcp := p[ip:]
				want := []uint8{flowcell.FlagACK | flowcell.FlagECE | flowcell.FlagCWR, flowcell.FlagACK | flowcell.FlagECE,
					flowcell.FlagACK | flowcell.FlagECE | flowcell.FlagPSH | flowcell.FlagFIN}[i]
				if tcp[13] != want {
					t.Errorf("segment %d has flags %02x, want %02x", i, tcp[13], want)
				}
				if seq := binary.BigEndian.Uint32(tcp[4:]); seq != 0xfffff000+uint32(1000*i) {
					t.Errorf("segment %d begins at %x", i, seq)
				}
				if ones(tcp, pseudo(p, ip)) != 0xffff {
					t.Errorf("segment %d has a bad TCP checksum", i)
				}
				if version == 4 {
					if id := binary.BigEndian.Uint16(p[4:]); id != 0x1240+uint16(i) || ones(p[:20], 0) != 0xffff || int(binary.BigEndian.Uint16(p[2:])) != len(p) {
						t.Errorf("segment %d: %x", i, p[:20])
					}
				} else if int(binary.BigEndian.Uint16(p[4:])) != len(p)-40 {
					t.Errorf("segment %d: %x", i, p[:40])
				}
			}
		}
	}
}

// Datagrams of one size under one header (UDP_SEGMENT).
// Options make an IPv4 header as long as one of IPv6, and it is still one of IPv4.
func TestSegmenter_keepsTheOptionsOfIPv4(t *testing.T) {
	for _, ip := range []int{20, 24, 36, 40, 44, 60} {
		short := packet(4, 2500, flags, 12)
		b := slices.Concat(short[:20], bytes.Repeat([]byte{1}, ip-20), short[20:])
		b[0] = 0x40 | uint8(ip/4)
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		for i, p := range cut(t, parts(b, ip+32), 1000, gso.Complete) {
			want := slices.Clone(b[:ip])
			binary.BigEndian.PutUint16(want[2:], uint16(len(p)))
			binary.BigEndian.PutUint16(want[4:], 0x1240+uint16(i))
			want[10], want[11] = 0, 0
			binary.BigEndian.PutUint16(want[10:], ^ones(want, 0))
			tcp := p[ip:]
			sum := uint32(ones(p[12:20], uint32(flowcell.ProtoTCP+len(tcp))))
			if !bytes.Equal(p[:ip], want) || ones(tcp, sum) != 0xffff {
				t.Errorf("%d bytes of header, segment %d: %x, want %x", ip, i, p[:ip], want)
			}
		}
	}
}

func TestSegmenter_cutsDatagrams(t *testing.T) {
	for _, version := range []int{4, 6} {
		ip := 20
		if version == 6 {
			ip = 40
		}
		b := packet(version, 2500, 0, 0) // 12 bytes more of payload without TCP's header
		b[map[int]int{4: 9, 6: 6}[version]] = flowcell.ProtoUDP
		if version == 4 {
			b[10], b[11] = 0, 0
			binary.BigEndian.PutUint16(b[10:], ^ones(b[:20], 0))
		}
		binary.BigEndian.PutUint16(b[ip+4:], uint16(len(b)-ip))
		head := ip + 8
		all := cut(t, parts(b, head), 1000, gso.Complete)
		if len(all) != 3 {
			t.Fatalf("%d datagrams", len(all))
		}
		for i, p := range all {
			size := []int{1000, 1000, 512}[i]
			sum := ones(p[ip:], uint32(ones(p[ip-8*map[int]int{4: 1, 6: 4}[version]:ip], uint32(flowcell.ProtoUDP+len(p)-ip))))
			if len(p) != head+size || !bytes.Equal(p[head:], b[head+1000*i:][:size]) || int(binary.BigEndian.Uint16(p[ip+4:])) != 8+size || sum != 0xffff {
				t.Errorf("IPv%d, datagram %d: %x, sum %04x", version, i, p[:head], sum)
			}
		}
	}
}

func TestSegmenter_partialIsThePseudoHeader(t *testing.T) {
	b := packet(4, 1500, flowcell.FlagACK, 0)
	for _, p := range cut(t, parts(b, 40), 1000, gso.Partial) {
		if got, want := binary.BigEndian.Uint16(p[36:]), uint16(pseudo(p, 20)); got != want {
			t.Errorf("%04x, want %04x", got, want)
		}
	}
}

// Header and Payload make the same segments as Next.
func TestSegmenter_headerAndPayloadInParts(t *testing.T) {
	b := packet(4, 3300, flags, 12)
	want := cut(t, parts(b, 52, 999), 1000, gso.Partial)
	var s gso.Segmenter
	if err := s.Start(parts(b, 52, 999), 1000, gso.Partial); err != nil {
		t.Fatal(err)
	}
	for i := 0; s.Left() > 0; i++ {
		head := make([]byte, s.HeaderLen())
		s.Header(head)
		p, n := s.Payload([][]byte{head})
		if got := bytes.Join(p, nil); !bytes.Equal(got, want[i]) || n != len(got)-len(head) {
			t.Errorf("segment %d:\n%x, want\n%x", i, got, want[i])
		}
	}
}

func TestSegmenter_refuses(t *testing.T) {
	good := packet(4, 100, flowcell.FlagACK, 0)
	with := func(edit func(b []byte)) []byte {
		b := bytes.Clone(good)
		edit(b)
		return b
	}
	// BIG TCP: longer than a length field can say, with and without a jumbogram's option.
	big := packet(6, 100_000, flowcell.FlagACK, 0)
	big[4], big[5] = 0, 0
	jumbo := slices.Concat(big[:40], []byte{6, 0, 0xc2, 4, 0, 1, 0x86, 0xbc}, big[40:])
	jumbo[6] = 0
	six := packet(6, 100, flowcell.FlagACK, 0)
	options := slices.Concat(six[:40], []byte{6, 0, 1, 4, 0, 0, 0, 0}, six[40:])
	options[5], options[6] = options[5]+8, 60
	var s gso.Segmenter
	for name, c := range map[string]struct {
		parts [][]byte
		mss   int
		want  error
	}{
		"BIG TCP":             {parts(big, 60), 1000, gso.ErrLength},
		"a jumbogram":         {parts(jumbo, 68), 1000, gso.ErrHeaders},
		"an extension header": {[][]byte{options}, 10, gso.ErrHeaders},
		"no parts":            {nil, 10, gso.ErrHeaders},
		"no segment size":     {[][]byte{good}, 0, gso.ErrMSS},
		"headers in pieces":   {parts(good, 30), 10, gso.ErrHeaders},
		"neither TCP nor UDP": {[][]byte{with(func(b []byte) { b[9] = 1 })}, 10, gso.ErrHeaders},
		"a fragment":          {[][]byte{with(func(b []byte) { b[6] = 0x20 })}, 10, gso.ErrHeaders},
		"data offset":         {[][]byte{with(func(b []byte) { b[32] = 0x40 })}, 10, gso.ErrHeaders},
		"IHL":                 {[][]byte{with(func(b []byte) { b[0] = 0x44 })}, 10, gso.ErrHeaders},
		"bytes are missing":   {[][]byte{good[:120]}, 10, gso.ErrLength},
		"bytes are too many":  {[][]byte{append(bytes.Clone(good), 0)}, 10, gso.ErrLength},
	} {
		if err := s.Start(c.parts, c.mss, gso.Complete); err != c.want || s.Left() != 0 || s.Next(make([]byte, 100)) != 0 {
			t.Errorf("%s: %v, %d left", name, err, s.Left())
		}
	}
	if err := s.Start([][]byte{good}, 50, gso.Complete); err != nil || s.Next(make([]byte, 89)) != 0 || s.Left() != 0 {
		t.Errorf("a segment that does not fit: %v, %d left", err, s.Left())
	}
}

// What is cut and merged again is what it was.
func FuzzSegmenter(f *testing.F) {
	f.Add(packet(4, 3000, flags, 12), 1000, 60)
	f.Add(packet(6, 3000, flowcell.FlagACK, 0), 999, 100)
	f.Add(packet(4, 0, flags, 0), 1, 40)
	f.Add([]byte("\x4f"), 1, 0)
	f.Fuzz(func(t *testing.T, b []byte, mss, first int) {
		first = min(max(first, 0), len(b))
		before := bytes.Clone(b)
		var s gso.Segmenter
		if s.Start([][]byte{b[:first], b[first:]}, mss, gso.Complete) != nil {
			return
		}
		mss = min(mss, 1<<16)
		var train gro.Train
		var merged []byte
		last := 0
		buf := make([]byte, 1<<16)
		for i := 0; s.Left() > 0; i++ {
			head := s.HeaderLen()
			n := s.Next(buf)
			if n < head || n > head+mss {
				t.Fatalf("%d bytes, headers of %d", n, head)
			}
			p := buf[:n]
			if i == 0 {
				train.Start(p, 0)
				merged = append(merged, p...)
			} else {
				// CWR, URG and SYN keep the merger from merging; bytes are bytes.
				train.Add(p, 0)
				merged = append(merged, p[head:]...)
			}
			last = head
		}
		if !bytes.Equal(b, before) {
			t.Fatal("Next writes to the packet")
		}
		if !bytes.Equal(merged[last:], b[last:]) {
			t.Fatalf("%x became %x", b, merged)
		}
		if train.MSS() > 0 && train.Segments() > 1 {
			train.Finish(merged)
			if !bytes.Equal(merged[2:10], b[2:10]) || merged[len(merged[:last])-20+13] != b[last-20+13] && last == 40 {
				t.Fatalf("%x became %x", b[:last], merged[:last])
			}
		}
	})
}

func TestSegmenter_allocatesNothing(t *testing.T) {
	p := parts(packet(4, 64000, flowcell.FlagACK, 0), 40)
	buf := make([]byte, 1500)
	var s gso.Segmenter
	if n := testing.AllocsPerRun(10, func() {
		s.Start(p, 1460, gso.Complete)
		for s.Next(buf) > 0 {
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSegmenter(b *testing.B) {
	p := parts(packet(4, 64240, flowcell.FlagACK, 0), 40)
	for _, c := range []gso.Checksum{gso.Complete, gso.Partial} {
		b.Run([]string{"complete", "partial"}[c], func(b *testing.B) {
			buf := make([]byte, 1500)
			var s gso.Segmenter
			b.SetBytes(64240)
			for b.Loop() {
				s.Start(p, 1460, c)
				for s.Next(buf) > 0 {
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/44, "ns/segment")
		})
	}
}
