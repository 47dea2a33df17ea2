package encap

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestSIDs_table(t *testing.T) {
	for _, c := range []struct {
		ports []int
		want  string
	}{
		{[]int{2, 3, 1, 0}, "5f00:304:201:fe00::"},
		{[]int{4, 3}, "5f00:504:fe00::"},
		{nil, "5f00:fe00::"},
		{[]int{MaxSIDPort}, "5f00:dffe::"},
		{slices.Repeat([]int{0}, maxSIDs), "5f00:101:101:101:101:101:101:1fe"},
	} {
		got, err := SIDs(c.ports)
		if err != nil || got != netip.MustParseAddr(c.want) {
			t.Errorf("%v: %v, %v; want %s", c.ports, got, err, c.want)
		}
		if back, err := ParseSIDs(got); err != nil || !slices.Equal(back, c.ports) {
			t.Errorf("%v: came back as %v, %v", c.ports, back, err)
		}
	}
	for _, c := range []struct {
		ports []int
		names []string
	}{
		{[]int{1, MaxSIDPort + 1}, []string{"port 223", "number 1", "222"}},
		{[]int{-1}, []string{"port -1"}},
		{slices.Repeat([]int{1}, maxSIDs+1), []string{"14 ports", "13"}},
	} {
		_, err := SIDs(c.ports)
		for _, name := range c.names {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%v: %v, want an error with %q", c.ports, err, name)
			}
		}
	}
}

func TestParseSIDs_errors(t *testing.T) {
	for addr, want := range map[string]error{
		"5f01:304:fe00::": ErrSIDBlock,
		"fe80::1":         ErrSIDBlock,
		"95.0.3.4":        ErrSIDBlock,
		"5f00::":          ErrSIDEnd, // nothing
		"5f00:304::":      ErrSIDEnd, // nobody decapsulates
		"5f00:3:fe00::":   ErrSIDEnd, // a hole
		"5f00:300:fe00::": ErrSIDEnd,
		"5f00:3fe:400::":  ErrSIDEnd, // something behind
		"5f00:3fe::1":     ErrSIDEnd,
		"5f00:3e0:fe00::": ErrSIDPort,
		"5f00:3ff:fe00::": ErrSIDPort,
		"5f00:3fe::":      nil,
		"5f00:3df:fe00::": nil,
	} {
		a, err := netip.ParseAddr(addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseSIDs(a); err != want {
			t.Errorf("%s: %v, want %v", addr, err, want)
		}
	}
	if _, err := ParseSIDs(netip.Addr{}); err != ErrSIDBlock {
		t.Errorf("no address: %v", err)
	}
}

// popSlow is RFC 9800 §4.1 on a string: the argument, all behind the active
// SID, moves to the active one's place, if it is not zero.
func popSlow(a [16]byte) (after [16]byte, sid byte, ok bool) {
	if a[0] != 0x5f || a[1] != 0 {
		return a, 0, false
	}
	s := string(a[:])
	block, active, argument := s[:2], s[2], s[3:]
	if strings.Trim(argument, "\x00") == "" {
		return a, active, false
	}
	return [16]byte([]byte(block + argument + "\x00")), active, true
}

func TestPopSID_matchesObviousOne(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	popped := 0
	for range 50000 {
		a := [16]byte{0x5f}
		for i := 2; i < 2+rng.IntN(15); i++ {
			a[i] = byte(rng.Uint32()) & byte(-rng.IntN(2)) // many zeros
		}
		if rng.IntN(10) == 0 {
			a[rng.IntN(2)]++
		}
		got := a
		sid, ok := PopSID(&got)
		after, wantSID, wantOK := popSlow(a)
		if got != after || sid != wantSID || ok != wantOK {
			t.Fatalf("seed %d: %x: %x, SID %#x, %v; want %x, %#x, %v", seed, a, got, sid, ok, after, wantSID, wantOK)
		}
		if ok {
			popped++
		}
	}
	if popped < 10000 {
		t.Errorf("only %d had something behind the active SID", popped)
	}
}

func FuzzParseSIDs(f *testing.F) {
	f.Add([]byte{0x5f, 0, 3, 4, 2, 1, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add(bytes.Repeat([]byte{0x5f, 0}, 8))
	f.Add(append([]byte{0x5f, 0}, bytes.Repeat([]byte{1}, 14)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		addr, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		ports, err := ParseSIDs(addr)
		if err != nil {
			if ports != nil {
				t.Fatalf("%v: %v, but %v", addr, err, ports)
			}
			return
		}
		if back, err := SIDs(ports); err != nil || back != addr {
			t.Fatalf("%v: ports %v, which are %v, %v", addr, ports, back, err)
		}
		// Switches take the labels off one by one, down to SIDDecap.
		a := addr.As16()
		for _, port := range ports {
			if sid, ok := PopSID(&a); !ok || int(sid) != port+1 {
				t.Fatalf("%v: popped %#x, %v; want port %d", addr, sid, ok, port)
			}
		}
		if sid, ok := PopSID(&a); sid != SIDDecap || ok {
			t.Fatalf("%v: ends with %#x, %v", addr, sid, ok)
		}
	})
}
