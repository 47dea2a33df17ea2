package hops

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"weft/encap"
)

// Whatever comes in, nothing panics, and what nobody was asked is no answer.
func FuzzReceive(f *testing.F) {
	n := &network{self: netip.MustParseAddr("10.0.0.2")}
	probe, err := encap.AppendProbe(nil, encap.Probe{Kind: encap.ProbeRequest, Token: 7, Origin: n.self, Target: netip.MustParseAddr("10.3.1.3")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(n.icmp(netip.MustParseAddr("10.0.0.1"), icmpTimeExceeded, 0, probe))
	n.short = true
	f.Add(n.icmp(netip.MustParseAddr("10.0.0.1"), icmpUnreachable, 3, probe))
	f.Add(probe)
	f.Fuzz(func(t *testing.T, b []byte) {
		w, _ := newWalk(t, 1, netip.MustParseAddr("10.3.1.3"))
		w.Next(start)
		w.Receive(b, start)
		for i, p := range w.Paths() {
			for k := range p.Hops {
				if w.Stats(i, k).Answered > 0 && len(b) < 28 {
					t.Error("an answer of less than a header")
				}
			}
		}
	})
}

// Whoever cannot see the packets is not taken for a switch: quotes without their addresses, errors
// that went to somebody else, and numbers that begin at one.
func TestWalk_forgedAnswers(t *testing.T) {
	for _, addressed := range []bool{false, true} {
		w, n := newWalk(t, 1, netip.MustParseAddr("10.3.1.3"))
		n.short = true
		var sent [][]byte
		for p, ok := w.Next(start); ok; p, ok = w.Next(start) {
			sent = append(sent, p.Bytes)
		}
		evil := netip.MustParseAddr("203.0.113.66")
		for id := range 200 {
			for _, b := range sent {
				b = slices.Clone(b)
				binary.BigEndian.PutUint16(b[4:], uint16(id)) // guessed
				if !addressed {
					binary.BigEndian.PutUint16(b[4:], binary.BigEndian.Uint16(sent[id%len(sent)][4:])) // known
					clear(b[12:20])
				}
				w.Receive(n.icmp(evil, icmpTimeExceeded, 0, b), start)
			}
		}
		for i, p := range w.Paths() {
			for k := range p.Hops {
				if s := w.Stats(i, k); s.From[evil] > 0 {
					t.Errorf("addresses %t: path %d hop %d: %d forged answers", addressed, i, k, s.From[evil])
				}
			}
		}
	}
}
