package prober

import (
	"net/netip"
	"testing"

	"golang.org/x/net/bpf"

	"weft/encap"
)

// accepts runs a filter over an Ethernet frame with a packet, as the kernel would that says
// where the frame is addressed to.
func accepts(t *testing.T, self netip.Addr, port uint16, errors bool, kind uint32, etherType uint16, packet []byte) bool {
	t.Helper()
	code := instructions(self, port, errors)
	if len(code) == 0 || code[0] != (bpf.LoadExtension{Num: bpf.ExtType}) {
		t.Fatalf("the filter begins with %v", code)
	}
	code[0] = bpf.LoadConstant{Val: kind} // the VM has no such extension
	vm, err := bpf.NewVM(code)
	if err != nil {
		t.Fatal(err)
	}
	frame := append(make([]byte, 12), byte(etherType>>8), byte(etherType))
	n, err := vm.Run(append(frame, packet...))
	if err != nil {
		t.Fatal(err)
	}
	if n != 0 && n < encap.MaxProbeLen+14 {
		t.Errorf("%d bytes are let through", n)
	}
	return n > 0
}

// A filter lets through datagrams and errors for the own address and no others.
func TestFilter(t *testing.T) {
	for name, c := range map[string]struct {
		self, other    netip.Addr
		etherType      uint16
		protocol, icmp int  // offsets in the packet
		errors, kind   byte // of ICMP in the IP header, and the type of the error
		code           byte // of the error
		anyCode        bool // will do
		refused        map[string]func([]byte)
	}{
		"IPv4": {netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.3.1.3"), 0x0800, 9, 20, 1, 3, 4, false,
			map[string]func([]byte){
				"options":    func(b []byte) { b[0] = 0x46 },
				"version":    func(b []byte) { b[0] = 0x65 },
				"fragment":   func(b []byte) { b[7] = 1 },
				"more":       func(b []byte) { b[6] = 0x20 },
				"dst's end":  func(b []byte) { b[19]++ },
				"other port": func(b []byte) { b[23]++ },
				"TCP":        func(b []byte) { b[9] = 6 },
				"ICMPv6":     func(b []byte) { b[9], b[20] = 58, 2 },
			}},
		"IPv6": {netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("2001:db8:3::3"), 0x86dd, 6, 40, 58, 2, 0, true,
			map[string]func([]byte){
				"version":     func(b []byte) { b[0] = 0x40 },
				"fragment":    func(b []byte) { b[6] = 44 },
				"hop-by-hop":  func(b []byte) { b[6] = 0 },
				"dst's first": func(b []byte) { b[24]++ },
				"dst's 2nd":   func(b []byte) { b[28]++ },
				"dst's 3rd":   func(b []byte) { b[32]++ },
				"dst's end":   func(b []byte) { b[39]++ },
				"other port":  func(b []byte) { b[43]++ },
				"TCP":         func(b []byte) { b[6] = 6 },
				"ICMP":        func(b []byte) { b[6], b[40], b[41] = 1, 3, 4 },
			}},
	} {
		for _, errors := range []bool{true, false} {
			request := func() []byte {
				b, err := encap.AppendProbe(nil, encap.Probe{Kind: encap.ProbeRequest, Origin: c.other, Target: c.self})
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			run := func(kind uint32, etherType uint16, b []byte) bool {
				t.Helper()
				return accepts(t, c.self, encap.ProbePort, errors, kind, etherType, b)
			}
			if !run(0, c.etherType, request()) {
				t.Errorf("%s: refuses a probe", name)
			}
			if run(3, c.etherType, request()) || run(4, c.etherType, request()) {
				t.Errorf("%s: lets through what is for another host, or goes out", name)
			}
			if run(0, 0x0800^0x86dd^c.etherType, request()) || run(0, 0x0806, request()) {
				t.Errorf("%s: lets through another protocol's frame", name)
			}
			for what, change := range c.refused {
				b := request()
				change(b)
				if run(0, c.etherType, b) {
					t.Errorf("%s: lets through: %s", name, what)
				}
			}
			tooBig := request()
			tooBig[c.protocol], tooBig[c.icmp], tooBig[c.icmp+1] = c.errors, c.kind, c.code
			if run(0, c.etherType, tooBig) != errors {
				t.Errorf("%s: lets a switch's error through: %v", name, !errors)
			}
			tooBig[c.icmp+1]++
			if run(0, c.etherType, tooBig) != (errors && c.anyCode) {
				t.Errorf("%s: the same of another code: %v", name, !(errors && c.anyCode))
			}
			tooBig[c.icmp], tooBig[c.icmp+1] = 128, c.code
			if run(0, c.etherType, tooBig) {
				t.Errorf("%s: lets an echo through", name)
			}
			if _, err := filter(c.self, 9, errors); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
