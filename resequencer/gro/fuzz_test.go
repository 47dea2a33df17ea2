package gro

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"weft/flowcell"
)

// mutations are what an operation of a script may do to a packet. Those that
// are undone by doing them again let a train go on with what they have made.
var mutations = []func(p *packet, arg byte){
	func(p *packet, arg byte) { p.payload = p.payload[:len(p.payload)*int(arg)/256] },
	func(p *packet, arg byte) { p.payload = append(p.payload, make([]byte, 1+arg)...) },
	func(p *packet, arg byte) { p.payload = nil },
	func(p *packet, arg byte) { p.payload = slices.Repeat(p.payload, 2+int(arg%40)) },
	func(p *packet, arg byte) {
		p.gsoSize = len(p.payload)
		p.payload = slices.Repeat(p.payload, 1+int(arg%20))
	},
	func(p *packet, arg byte) {
		p.gsoSize = len(p.payload)
		p.payload = slices.Repeat(p.payload, 2+int(arg%20))[int(arg)%max(len(p.payload), 1):]
	},
	func(p *packet, arg byte) { p.gsoSize = int(int8(arg)) * 10 },
	func(p *packet, arg byte) { p.flags |= flowcell.FlagPSH },
	func(p *packet, arg byte) { p.flags |= flowcell.FlagFIN },
	func(p *packet, arg byte) { p.flags ^= 1 << (arg % 8) },
	func(p *packet, arg byte) { p.seq += uint32(int8(arg)) },
	func(p *packet, arg byte) { p.seq += 1 << (arg % 32) },
	func(p *packet, arg byte) { p.ack ^= 1 << (arg % 32) },
	func(p *packet, arg byte) { p.window ^= 1 << (arg % 16) },
	func(p *packet, arg byte) { p.urgent ^= 1 << (arg % 16) },
	func(p *packet, arg byte) { p.reserved ^= 1 << (arg % 4) },
	func(p *packet, arg byte) { p.options = p.options[:len(p.options)/4*int(arg)/256*4] },
	func(p *packet, arg byte) {
		if len(p.options) > 0 {
			p.options = bytes.Clone(p.options)
			p.options[int(arg)%len(p.options)] ^= 1 + arg>>4
		}
	},
	func(p *packet, arg byte) { p.options = bytes.Repeat([]byte{arg}, int(arg)%11*4) },
	func(p *packet, arg byte) { p.id = uint16(arg) << 8 },
	func(p *packet, arg byte) { p.tos ^= 1 << (arg % 8) },
	func(p *packet, arg byte) { p.ttl ^= 1 << (arg % 8) },
	func(p *packet, arg byte) { p.ports[arg%2] ^= 1 << (arg >> 4) },
	func(p *packet, arg byte) { p.src ^= 1 << (arg % 8) },
	func(p *packet, arg byte) { p.dst ^= 1 << (arg % 8) },
	func(p *packet, arg byte) {
		if p.version == 4 {
			p.fragment ^= 1 << (arg % 16)
		} else {
			p.label ^= 1 << (arg % 4)
		}
	},
	func(p *packet, arg byte) { p.ipOptions = make([]byte, 8) },
	func(p *packet, arg byte) { p.proto = arg },
	func(p *packet, arg byte) {
		if p.version = 10 - p.version; p.version == 4 {
			p.label = 0
		} else {
			p.fragment = 0
		}
	},
}

// counts is what a script has led to: trains, those of more than a packet, the
// segments of all, and trains that are about as long as can be.
type counts struct{ trains, merged, segments, whole int }

// play makes packets of a script, three bytes each, gives them to trains and
// checks trains against the oracle, and what comes out against what went in.
func play(t *testing.T, script []byte) (c counts) {
	if len(script) < 2 {
		return
	}
	size := 1 + int(script[0])*8
	base := data(4+2*int(script[1]%2), size)
	var tr Train
	var o oracle
	var in [][]byte
	complete := func() {
		if len(o) > 0 {
			c.trains++
			c.segments += tr.Segments()
			if len(in) > 1 {
				c.merged++
			}
			if check(t, &tr, o, in) > 60000 {
				c.whole++
			}
		}
	}
	for script = script[2:]; len(script) >= 3; script = script[3:] {
		p := base
		// Half of the operations change nothing, an eighth of them for good.
		if op := int(script[0]); op >= 128 {
			mutations[op%len(mutations)](&p, script[1])
		}
		if len(p.bytes()) > 65535 {
			p.payload = p.payload[:1000]
		}
		if script[2] < 32 {
			payload := base.payload
			base = p
			base.payload = payload
		}
		base.seq = p.seq + uint32(len(p.payload))
		base.id++
		b := p.bytes()
		before := bytes.Clone(b)
		got, want := tr.Add(b, p.gsoSize), o.add(p)
		if got != want {
			t.Fatalf("%vcontinues %v, want %v, the train of\n%v", p, got, want, o)
		}
		if !got {
			complete()
			in = nil
			tr.Start(b, p.gsoSize)
			o = oracle{p}
		}
		if !bytes.Equal(b, before) {
			t.Fatalf("Add or Start writes:\n%x to\n%x", before, b)
		}
		in = append(in, b)
	}
	complete()
	return c
}

// check looks at a complete train: cut into segments again, it must be the
// packets that went in, byte by byte. It returns its length.
func check(t *testing.T, tr *Train, o oracle, in [][]byte) int {
	if tr.Segments() != o.segments() {
		t.Fatalf("%d segments, want %d of\n%v", tr.Segments(), o.segments(), o)
	}
	out := merge(tr, in)
	if len(in) == 1 {
		if !bytes.Equal(out, in[0]) {
			t.Fatalf("alone, but %x became %x", in[0], out)
		}
		return 0
	}
	if len(out) > MaxLength {
		t.Fatalf("%d bytes", len(out))
	}
	mss := o[0].segment()
	if tr.MSS() != mss || tr.HeaderLen() != len(in[0])-len(o[0].payload) {
		t.Fatalf("MSS %d, headers %d:\n%v", tr.MSS(), tr.HeaderLen(), o)
	}
	var want [][]byte
	var ids []uint16
	for i, p := range o {
		n := (len(p.payload)-1)/mss + 1
		own := slices.Repeat([]uint16{p.id}, n)
		want = append(want, segments(in[i], mss, own)...)
		ids = append(ids, own...)
	}
	got := segments(complete(t, out), mss, ids)
	if len(got) != len(want) || len(got) != tr.Segments() {
		t.Fatalf("cut into %d, want %d", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("segment %d:\n%x, want\n%x", i, got[i], want[i])
		}
	}
	if sum(out[:ipv4Header]) != 0xffff && out[0]>>4 == 4 {
		t.Fatalf("header checksum of %x", out[:ipv4Header])
	}
	return len(out)
}

// randomScript is mostly long trains.
func randomScript(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 0))
	script := make([]byte, 2+3*n)
	for i := range script {
		script[i] = byte(rng.Uint32())
	}
	quiet := []int{0, 16, 18, 19, 20}[rng.IntN(5)]
	for i := 2; i < len(script); i += 3 {
		if rng.IntN(20) < quiet {
			script[i] = 0
		}
	}
	return script
}

func FuzzTrain(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(randomScript(seed, 30))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 600 {
			t.Skip() // the oracle is quadratic
		}
		play(t, script)
	})
}

func TestTrain_matchesOracle(t *testing.T) {
	var total counts
	for seed := uint64(1000); seed < 1400; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := play(t, randomScript(seed, 80))
			total.trains += c.trains
			total.merged += c.merged
			total.segments += c.segments
			total.whole += c.whole
		})
	}
	if total.merged < 2000 || total.trains-total.merged < 2000 || total.whole < 50 || total.segments < 5*total.trains {
		t.Errorf("the scripts leave something untested: %+v", total)
	}
}

// Any two byte strings: no panic, and what continues is a segment that
// flowcell, too, holds for the next of the same flow.
func FuzzTrain_anyBytes(f *testing.F) {
	for _, version := range []int{4, 6} {
		p := data(version, 20)
		f.Add(p.bytes(), p.after(20).bytes(), 0)
		f.Add(p.bytes(), p.after(10).bytes(), 5)
		f.Add(p.bytes()[:30], p.bytes()[:70], -1)
	}
	f.Fuzz(func(t *testing.T, first, second []byte, gsoSize int) {
		var tr Train
		tr.Start(first, gsoSize)
		if !tr.Add(second, gsoSize) {
			if tr.Finish(first) {
				t.Fatal("one packet, but Finish has something to do")
			}
			return
		}
		var p, q flowcell.Packet
		if p.Parse(first) == nil && q.Parse(second) == nil {
			if p.Flow != q.Flow || !p.IsTCP() || p.Fragment || q.Payload == 0 || q.Seq != p.Seq+uint32(p.Payload) {
				t.Fatalf("%x\n%+v is continued by\n%x\n%+v", first, p, second, q)
			}
			length := p.Length + int(q.Payload)
			if !tr.Finish(first) {
				t.Fatal("merged, but Finish has nothing to do")
			}
			b := append(first[:p.Length:p.Length], second[tr.HeaderLen():q.Length]...)
			if err := p.Parse(b); err != nil || p.Length != length {
				t.Fatalf("%x: %+v, %v", b, p, err)
			}
		}
	})
}
