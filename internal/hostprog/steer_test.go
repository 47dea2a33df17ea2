package hostprog

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"weft/internal/kernel/kerneltest"
)

// steerOracle says in plain words whether a frame that is addressed to the
// device goes to the reader.
func steerOracle(rules []SteerRule, frame []byte) bool {
	if len(frame) > 13 && frame[12] == 0x86 && frame[13] == 0xdd {
		return steerOracle6(rules, frame[14:])
	}
	if len(frame) < 34 || frame[12] != 8 || frame[13] != 0 {
		return false
	}
	ip := frame[14:]
	header := int(ip[0]&15) * 4
	if ip[0]>>4 != 4 || header < 20 || ip[9] == 4 {
		return false
	}
	dst := netip.AddrFrom4([4]byte(ip[16:]))
	i := slices.IndexFunc(rules, func(r SteerRule) bool { return r.Address == dst })
	fragment := binary.BigEndian.Uint16(ip[6:])&0x3fff != 0
	if i < 0 {
		return steeredBehind[0].Contains(dst) && ip[9] == 6 && !fragment && (ip[2] != 0 || ip[3] != 0)
	}
	what := rules[i].What
	switch {
	case what&SteerEverything != 0:
		return true
	case fragment, ip[2] == 0 && ip[3] == 0:
		return false
	case ip[9] == 6:
		return what&SteerTCP != 0
	case ip[9] != 1 || what&SteerTunnelErrors == 0 || len(ip) < header+8+20:
		return false
	}
	icmp := ip[header:]
	about := icmp[8:]
	return slices.Contains([]byte{3, 11, 12}, icmp[0]) && about[0]>>4 == 4 && about[9] == 4 &&
		netip.AddrFrom4([4]byte(about[12:])) == dst
}

// steerOracle6 is steerOracle for what an IPv6 frame carries.
func steerOracle6(rules []SteerRule, ip []byte) bool {
	if len(ip) < 40 || ip[0]>>4 != 6 || ip[4] == 0 && ip[5] == 0 {
		return false
	}
	dst := netip.AddrFrom16([16]byte(ip[24:]))
	i := slices.IndexFunc(rules, func(r SteerRule) bool { return r.Address == dst })
	if i < 0 {
		return steeredBehind[1].Contains(dst) && ip[6] == 6
	}
	switch what := rules[i].What; {
	case ip[6] == 41 || ip[6] == 4, ip[6] == 58 && (len(ip) < 41 || ip[40] >= 133 && ip[40] <= 137):
		return false
	case what&SteerEverything != 0:
		return true
	case ip[6] == 6:
		return what&SteerTCP != 0
	case ip[6] != 58 || what&SteerTunnelErrors == 0 || len(ip) < 40+8+40:
		return false
	}
	about := ip[48:]
	return slices.Contains([]byte{1, 2, 3, 4}, ip[40]) && about[0]>>4 == 6 && (about[6] == 41 || about[6] == 4) &&
		netip.AddrFrom16([16]byte(about[8:])) == dst
}

// One address of each kind, and one of all.
var (
	steerTo  = func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }
	steerTo6 = func(n byte) netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 0x01, 0xd, 0xb8, 5: 0x11, 10: 0x22, 15: n})
	}
	steered = []SteerRule{
		{steerTo(2), SteerTCP},
		{steerTo(3), SteerEverything},
		{steerTo(4), SteerTunnelErrors},
		{steerTo(5), SteerTCP | SteerTunnelErrors},
		{steerTo(6), SteerTCP | SteerEverything | SteerTunnelErrors},
		{steerTo6(2), SteerTCP},
		{steerTo6(3), SteerEverything},
		{steerTo6(6), SteerTCP | SteerEverything | SteerTunnelErrors},
		{steerTo6(4), SteerTunnelErrors},
		{steerTo6(5), SteerTCP | SteerTunnelErrors},
	}
)

// steeredBehind has the address without a rule, and one that has one.
var steeredBehind = []netip.Prefix{netip.PrefixFrom(steerTo(6), 31), netip.PrefixFrom(steerTo6(6), 127)}

// steerPackets are of all the kinds that are told apart, to every address that
// has a rule and one that has none.
func steerPackets() []namedPacket {
	var all []namedPacket
	from := netip.AddrFrom4([4]byte{10, 0, 1, 1})
	for n := byte(2); n <= 7; n++ {
		own := steerTo(n)
		h := kerneltest.IPv4{ID: uint16(n), Frag: 0x4000, TTL: 64, Protocol: 6, Src: from, Dst: own}
		add := func(name string, edit func(*kerneltest.IPv4), payload []byte, bytes ...func([]byte)) {
			h := h
			edit(&h)
			b := h.Bytes(payload)
			for _, e := range bytes {
				e(b)
			}
			all = append(all, namedPacket{name + " to " + own.String(), b})
		}
		same := func(*kerneltest.IPv4) {}
		tcp := []byte{0x12, 0x34, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0, 'd', 'a', 't', 'a'}
		add("TCP", same, tcp)
		add("no payload", same, nil)
		add("no length", same, tcp, func(b []byte) { b[2], b[3] = 0, 0 })
		add("no DF", func(h *kerneltest.IPv4) { h.Frag = 0 }, tcp)
		add("reserved flag", func(h *kerneltest.IPv4) { h.Frag = 0x8000 }, tcp)
		add("options", func(h *kerneltest.IPv4) { h.Options = []byte{1, 1, 1, 0} }, tcp)
		add("first fragment", func(h *kerneltest.IPv4) { h.Frag = 0x2000 }, tcp)
		add("last fragment", func(h *kerneltest.IPv4) { h.Frag = 1 }, tcp)
		add("UDP", func(h *kerneltest.IPv4) { h.Protocol = 17 }, tcp)
		add("nested", func(h *kerneltest.IPv4) { h.Protocol = 4 }, h.Bytes(tcp))
		add("header of 16 bytes", same, tcp, func(b []byte) { b[0] = 0x44 })
		add("version 5", same, tcp, func(b []byte) { b[0] = 0x55 })
		add("version 6", same, tcp, func(b []byte) { b[0] = 0x65 })

		icmp := func(h *kerneltest.IPv4) { h.Protocol = 1 }
		complaint := func(kind byte, about kerneltest.IPv4) []byte {
			return append([]byte{kind, 4, 0, 0, 0, 0, 5, 0}, about.Bytes(tcp)...)
		}
		outer := kerneltest.IPv4{Frag: 0x4000, TTL: 60, Protocol: 4, Src: own, Dst: steerTo(99)}
		for kind := range byte(14) {
			add("ICMP about a tunnel", icmp, complaint(kind, outer))
		}
		about := func(edit func(*kerneltest.IPv4)) []byte {
			o := outer
			edit(&o)
			return complaint(3, o)
		}
		add("echo", icmp, []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0})
		add("ICMP about TCP", icmp, about(func(h *kerneltest.IPv4) { h.Protocol = 6 }))
		add("ICMP about another's tunnel", icmp, about(func(h *kerneltest.IPv4) { h.Src = from }))
		add("ICMP about a packet with options", icmp, about(func(h *kerneltest.IPv4) { h.Options = []byte{1, 1, 1, 0} }))
		add("ICMP about version 6", icmp, complaint(3, outer), func(b []byte) { b[28] = 0x65 })
		add("ICMP in a fragment", func(h *kerneltest.IPv4) { h.Protocol, h.Frag = 1, 0x2000 }, complaint(3, outer))
		add("ICMP behind options", func(h *kerneltest.IPv4) { h.Protocol, h.Options = 1, make([]byte, 40) }, complaint(3, outer))
		add("ICMP with too little of the packet", icmp, complaint(3, outer)[:8+19])
		add("ICMP with the packet's header alone", icmp, complaint(3, outer)[:8+20])
	}
	return all
}

// steerPackets6 are the same of IPv6.
func steerPackets6() []namedPacket {
	var all []namedPacket
	from := steerTo6(99)
	for _, n := range []byte{2, 3, 4, 5, 6, 7} {
		own := steerTo6(n)
		add := func(name string, next byte, payload []byte, bytes ...func([]byte)) {
			h := kerneltest.IPv6{Class: 2, Label: 0xabcde, Next: next, Hops: 60, Src: from, Dst: own}
			b := h.Bytes(payload)
			for _, e := range bytes {
				e(b)
			}
			all = append(all, namedPacket{name + " to " + own.String(), b})
		}
		tcp := []byte{0x12, 0x34, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0, 'd', 'a', 't', 'a'}
		add("TCP", 6, tcp)
		add("no payload", 6, nil)
		add("no length", 6, tcp, func(b []byte) { b[4], b[5] = 0, 0 })
		add("UDP", 17, tcp)
		add("version 4", 6, tcp, func(b []byte) { b[0] = 0x45 })
		for i := 24; i < 40; i += 4 {
			add("almost this address", 6, tcp, func(b []byte) { b[i]++ })
		}
		before := func(next byte) []byte { return append([]byte{next, 0, 1, 4, 0, 0, 0, 0}, tcp...) }
		for _, header := range []byte{0, 43, 44, 60} {
			add("TCP behind another header", header, before(6))
		}
		complaint := func(kind, next byte, src netip.Addr) []byte {
			about := kerneltest.IPv6{Next: next, Hops: 60, Src: src, Dst: from}
			return append([]byte{kind, 0, 0, 0, 0, 0, 5, 0}, about.Bytes(tcp)...)
		}
		for kind := range byte(6) {
			add("ICMPv6 about a tunnel", 58, complaint(kind, 41, own))
		}
		add("ICMPv6 about a tunnel of IPv4", 58, complaint(2, 4, own))
		for _, next := range []byte{5, 6, 40, 42, 44} {
			add("ICMPv6 about another protocol", 58, complaint(2, next, own))
		}
		for i := 8; i < 24; i += 4 {
			add("ICMPv6 about another's tunnel", 58, complaint(2, 41, own), func(b []byte) { b[48+i]++ })
		}
		add("ICMPv6 about version 4", 58, complaint(2, 41, own), func(b []byte) { b[48] = 0x45 })
		add("ICMPv6 with too little of the packet", 58, complaint(2, 41, own)[:8+39])
		add("ICMPv6 with the packet's header alone", 58, complaint(2, 41, own)[:8+40])
		for kind := byte(132); kind < 139; kind++ {
			add("ICMPv6 of neighbours", 58, []byte{kind, 0, 0, 0, 0, 0, 0, 0})
		}
		add("an echo", 58, []byte{128, 0, 0, 0, 0, 0, 0, 0})
		add("nested", 41, kerneltest.IPv6{Next: 6, Src: from, Dst: own}.Bytes(tcp))
	}
	return all
}

// steerFrames are all of them in Ethernet frames.
func steerFrames() []namedPacket {
	all := steerPackets()
	for i, p := range all {
		all[i].bytes = frameOf(p.bytes)
	}
	for _, p := range steerPackets6() {
		all = append(all, namedPacket{p.name, frame6Of(p.bytes)})
	}
	return all
}

func frame6Of(packet []byte) []byte {
	frame := frameOf(packet)
	frame[12], frame[13] = 0x86, 0xdd
	return frame
}

func frameOf(packet []byte) []byte {
	return append([]byte{0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 8, 0}, packet...)
}

// filterTakes runs the part of the socket's filter that looks at the frame.
func filterTakes(t testing.TB, vm *bpf.VM, frame []byte) bool {
	t.Helper()
	n, err := vm.Run(frame)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

func steerVM(t testing.TB) *bpf.VM {
	t.Helper()
	vm, err := bpf.NewVM(steerPacket(steered, steeredBehind...))
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

func TestSteerFilter_equalsTheOracle(t *testing.T) {
	vm := steerVM(t)
	taken := 0
	for _, p := range steerFrames() {
		frame := p.bytes
		want := steerOracle(steered, frame)
		if want {
			taken++
		}
		if got := filterTakes(t, vm, frame); got != want {
			t.Errorf("%s: taken %v, want %v", p.name, got, want)
		}
		frame[12], frame[13] = 8, 6 // ARP
		if filterTakes(t, vm, frame) {
			t.Errorf("%s: taken, but is ARP", p.name)
		}
	}
	if taken < 30 {
		t.Errorf("the oracle takes %d packets only", taken)
	}
}

// A frame that ends early must be judged alike.
func TestSteerFilter_truncated(t *testing.T) {
	vm := steerVM(t)
	for _, p := range steerFrames() {
		frame := p.bytes
		for n := 1; n < len(frame); n++ {
			if got, want := filterTakes(t, vm, frame[:n]), steerOracle(steered, frame[:n]); got != want {
				t.Fatalf("%s, %d bytes of it: taken %v, want %v", p.name, n, got, want)
			}
		}
	}
}

// The largest set of rules must still be a program that the kernel takes.
func TestSteerFilter_mostRules(t *testing.T) {
	tcp := make([]byte, 20)
	for name, c := range map[string]struct {
		rule  func(n byte) SteerRule
		frame func(n byte) []byte
	}{
		"IPv4": {func(n byte) SteerRule { return SteerRule{steerTo(n), steerAny} }, func(n byte) []byte {
			return frameOf(kerneltest.IPv4{Protocol: 17, Src: steerTo(99), Dst: steerTo(n)}.Bytes(tcp))
		}},
		"IPv6": {func(n byte) SteerRule { return SteerRule{steerTo6(n), SteerTCP | SteerTunnelErrors} }, func(n byte) []byte {
			return frame6Of(kerneltest.IPv6{Next: 6, Src: steerTo6(99), Dst: steerTo6(n)}.Bytes(tcp))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var rules []SteerRule
			for n := range byte(maxSteered) {
				rules = append(rules, c.rule(n))
			}
			mostRules(t, rules, c.frame)
		})
	}
}

// mostRules checks that the first addresses' packets, and no others', are taken.
func mostRules(t *testing.T, rules []SteerRule, frame func(n byte) []byte) {
	t.Helper()
	if err := checkSteerRules(rules); err != nil {
		t.Fatal(err)
	}
	program := steerProgram(rules)
	if _, err := bpf.Assemble(program); err != nil {
		t.Fatal(err)
	}
	if n := len(program); n > 4096 { // BPF_MAXINSNS
		t.Errorf("%d instructions", n)
	}
	vm, err := bpf.NewVM(steerPacket(rules))
	if err != nil {
		t.Fatal(err)
	}
	for n := range byte(maxSteered + 1) {
		if got, want := filterTakes(t, vm, frame(n)), n < maxSteered; got != want {
			t.Errorf("to address %d: taken %v", n, got)
		}
	}
}

func TestCheckSteerRules(t *testing.T) {
	a := steerTo(2)
	for _, c := range []struct {
		rules []SteerRule
		want  string
	}{
		{nil, "must be 1 to 16"},
		{make([]SteerRule, 17), "must be 1 to 16"},
		{[]SteerRule{{netip.Addr{}, SteerTCP}}, "give an IPv4 or IPv6 address"},
		{[]SteerRule{{netip.MustParseAddr("fe80::1%p0"), SteerTCP}}, "fe80::1%p0 has a zone"},
		{[]SteerRule{{a, 0}}, "What of 10.0.0.2 is 0"},
		{[]SteerRule{{a, 8}}, "What of 10.0.0.2 is 8"},
		{[]SteerRule{{a, SteerTCP}, {a, SteerEverything}}, "10.0.0.2 has two"},
		{steered, ""},
	} {
		err := checkSteerRules(c.rules)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.rules, err, c.want)
		}
	}
}

// noisyFrame changes some bytes of a frame's packet, in place, and perhaps its end.
func noisyFrame(rng *rand.Rand, frame []byte) []byte {
	for range rng.IntN(4) {
		frame[14+rng.IntN(len(frame)-14)] ^= 1 << rng.IntN(8)
	}
	return frame[:max(15, len(frame)-rng.IntN(40)*rng.IntN(2))]
}

func FuzzSteerFilter(f *testing.F) {
	for _, p := range steerFrames() {
		f.Add(p.bytes)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) == 0 {
			return
		}
		if got, want := filterTakes(t, steerVM(t), frame), steerOracle(steered, frame); got != want {
			t.Errorf("%x: taken %v, want %v", frame, got, want)
		}
	})
}
