package daemon

import "testing"

// superTraffic is what a program counts while long super-segments are sent.
type superTraffic struct {
	losses             superLosses
	sent, bytes, again uint64
}

// send counts super-segments of 192 KB, of whose bytes a part is sent again, and looks.
func (s *superTraffic) send(n int, again float64) bool {
	s.sent += uint64(n)
	s.bytes += uint64(n) * 190_000
	s.again += uint64(again * float64(n) * 190_000)
	return s.losses.look(s.sent, s.bytes, s.again) != ""
}

func TestSuperLosses(t *testing.T) {
	for name, c := range map[string]struct {
		n     int     // in an interval
		again float64 // part of the bytes
		lost  bool
	}{
		"nothing is lost":                      {1000, 0, false},
		"losses of a busy path":                {1000, 0.03, false},
		"what reordering has TCP send again":   {1000, 0.13, false},
		"one of four paths loses them":         {1000, 0.25, true},
		"all paths lose them":                  {1000, 1, true},
		"all lose them, and TCP hardly sends":  {5, 1.2, true},
		"a few, and a few bytes again":         {5, 0.3, true}, // in the end they are many
		"none are sent, and short ones resent": {0, 0, false},
	} {
		var s superTraffic
		lost := false
		for range 200 {
			lost = lost || s.send(c.n, c.again)
		}
		if lost != c.lost {
			t.Errorf("%s: lost is %v", name, lost)
		}
	}
	// A path that fails has much sent again once. So does each failure.
	var s superTraffic
	for i := range 100 {
		if s.send(100, 0) || i%10 == 0 && s.send(100, 0.8) {
			t.Fatalf("round %d: failures of paths are taken for losses of long super-segments", i)
		}
	}
	// Another program counts from 0.
	s = superTraffic{losses: superLosses{sent: 1 << 40, bytes: 1 << 50, again: 1 << 50}}
	for i := range 3 {
		if lost := s.send(100, 1); lost != (i == 2) {
			t.Errorf("interval %d of another program: %v", i, lost)
		}
	}
}
