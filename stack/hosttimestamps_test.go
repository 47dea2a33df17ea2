package stack

import "testing" // Both ends of a connection believe that the other has no timestamps.
func TestHost_usesNoTimestamps(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		w := newWire(t)
		use := func(c *Config) { c.TCP.Timestamps = wanted }
		transfer(t, newHost(t, w, addrA, use), newHost(t, w, addrB, use), 100_000)
		data := w.sightings(func(s sighting) bool { return s.packet.Payload > 0 })
		with := 0
		for _, s := range data {
			if s.packet.Length-int(s.packet.Payload) > 40 {
				with++
			}
		}
		if len(data) == 0 || (with == len(data)) != wanted || (with == 0) == wanted {
			t.Errorf("timestamps %v: %d of %d segments have options", wanted, with, len(data))
		}
	}
}

// A plain host that uses timestamps agrees to do without.
func TestHost_plainPeersTimestampsAreNotSeen(t *testing.T) {
	w := newWire(t)
	plain := newHost(t, w, addrA, func(c *Config) { c.TCP.Timestamps = true })
	weft := newHost(t, w, addrB)
	transfer(t, plain, weft, 100_000)
	transfer(t, weft, plain, 100_000)
	for _, s := range w.sightings(func(s sighting) bool { return s.packet.Payload > 0 }) {
		if s.packet.Length-int(s.packet.Payload) > 40 {
			t.Fatalf("a segment with options: %+v", s.packet)
		}
	}
}
