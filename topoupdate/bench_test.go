package topoupdate

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"
)

// big is the fabric of the issue: 27,648 hosts, 2,880 switches, 82,944 links.
const big = "fat-tree:k=48"

// One link of a k=48 fat-tree goes and comes: what a host does about it, snapshot
// included.
func BenchmarkListener_linkFlap(b *testing.B) {
	for _, c := range []struct {
		name string
		keys Keys
	}{{"plain", Keys{}}, {"signed", Keys{List: []Key{testKey}}}} {
		b.Run(c.name, func(b *testing.B) {
			s := newStation(b, big, c.keys)
			r := rand.New(rand.NewPCG(5, 5))
			packets := make([][]byte, 1024)
			for i := range packets {
				e := testEntry{originator: s.top.NumHosts() + 1152 + r.IntN(1152), version: version{1, uint32(i)}, down: []uint64{uint64(1) << r.IntN(48)}}
				packets[i] = s.message(e)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%len(packets) == 0 { // begins anew
					s.listener.session, s.listener.window = 0, ReplayWindow{}
					clear(s.listener.db.records)
				}
				s.listener.Receive(packets[i%len(packets)], netip.Addr{}, 0)
			}
		})
	}
}

// What a host keeps: the records of all switches, and a bit per link.
func BenchmarkListener_memory(b *testing.B) {
	top := mustParse(b, big)
	var kept []*Listener
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		l, err := NewListener(ListenerConfig{Topology: top, Self: 0})
		if err != nil {
			b.Fatal(err)
		}
		kept = append(kept, l)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(kept)), "B/host")
	runtime.KeepAlive(kept)
}

// What an agent of a k=48 fabric does about a message that changes nothing.
func BenchmarkAgent_rejectedAndRepeated(b *testing.B) {
	for _, signed := range []bool{false, true} {
		keys, suffix := Keys{}, "/plain"
		if signed {
			keys, suffix = Keys{List: []Key{testKey}}, "/signed"
		}
		c := newCouple(b, big, "a0.24", keys)
		entry := testEntry{originator: int(mustLookup(b, c.top, "a1.24")), version: version{1, 1}, down: []uint64{1}}
		up := 24 // the first port to a core
		packet := c.message(up, &message{header: header{kind: typeUpdate}, entries: []testEntry{entry}})
		c.agent.Receive(up, packet, c.now)
		forged := append([]byte(nil), packet...)
		forged[len(forged)-1] ^= 1
		if signed {
			forged[atCounter]++ // a counter that may be, or the MAC would not be looked at
		} else {
			forged[atFingerprint]++
		}
		for _, m := range []struct {
			name   string
			packet []byte
			repeat bool
		}{{"replayed", packet, false}, {"forged", forged, false}, {"repeated", packet, true}} {
			b.Run(m.name+suffix, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if m.repeat { // the same message as if it were the next
						c.agent.ports[up].adj.window = ReplayWindow{}
					}
					c.agent.Receive(up, m.packet, c.now)
				}
			})
		}
	}
}

// A change of a remote link at an aggregation switch: database, flooding to 24
// edge switches, encoding included.
func BenchmarkAgent_flood(b *testing.B) {
	c := newCouple(b, big, "a0.24", Keys{})
	entry := testEntry{originator: int(mustLookup(b, c.top, "a1.24")), down: []uint64{0}}
	b.ReportAllocs()
	for b.Loop() {
		entry.sequence++
		entry.down[0] ^= 1
		packet := c.message(24, &message{header: header{kind: typeUpdate}, entries: []testEntry{entry}})
		c.now += 10 * time.Millisecond
		c.agent.Receive(24, packet, c.now)
		c.drain()
		c.agent.Topology()
	}
}
