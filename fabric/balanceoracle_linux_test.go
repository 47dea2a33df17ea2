package fabric

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"

	"weft/internal/balance"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// randomPacket is of one of a few hosts and flows, and says what the rules know of it, and by
// which set it goes; noRandomSet if it is left to the routes.
func randomPacket(rng *rand.Rand) (bytes []byte, p balance.Packet, set uint32) {
	if rng.IntN(2) == 0 {
		return randomPacket6(rng)
	}
	dst := [4]byte{10, byte(rng.IntN(5)), 0, byte(rng.IntN(4))}
	if rng.IntN(8) == 0 {
		dst[2] = 255
	}
	src := [4]byte{10, 200, 0, byte(rng.IntN(8))}
	p = balance.Packet{Src: binary.BigEndian.Uint32(src[:]), Dst: binary.BigEndian.Uint32(dst[:]),
		Protocol: []uint8{1, 4, 6, 6, 6, 17, 33, 132}[rng.IntN(8)]}
	h := kerneltest.IPv4{ID: uint16(rng.Uint32()), TTL: 60, Protocol: p.Protocol, Src: netip.AddrFrom4(src), Dst: netip.AddrFrom4(dst)}
	payload := randomPayload(rng)
	whole := true
	switch rng.IntN(6) {
	case 0:
		h.Frag, whole = 0x2000, false
	case 1:
		h.Frag, whole = 0x0007, false
	}
	if hasPorts(p.Protocol) && whole && len(payload) >= 4 {
		p.Ports = binary.BigEndian.Uint32(payload)
	}
	if set = uint32(dst[1]); set > 3 || dst[2] == 255 || p.Protocol == 4 {
		set = noRandomSet
	}
	return h.Bytes(payload), p, set
}

const noRandomSet = 99

// randomPacket6 is randomPacket of IPv6.
func randomPacket6(rng *rand.Rand) (bytes []byte, p balance.Packet, set uint32) {
	dst := [16]byte{0xfd, 5: byte(rng.IntN(5)), 15: byte(rng.IntN(4))}
	if rng.IntN(8) == 0 {
		dst[7] = 255
	}
	src := [16]byte{0xfd, 2: 1, 7: byte(rng.IntN(2)), 15: byte(rng.IntN(4))}
	p = balance.Packet{Src6: netip.AddrFrom16(src), Dst6: netip.AddrFrom16(dst),
		Protocol: []uint8{0, 4, 6, 6, 6, 17, 33, 41, 43, 44, 58, 132}[rng.IntN(12)]}
	h := kerneltest.IPv6{Class: byte(rng.IntN(4)), Label: rng.Uint32N(3) << 18, Hops: 60, Next: p.Protocol, Src: p.Src6, Dst: p.Dst6}
	payload := randomPayload(rng)
	switch {
	case !hasPorts(p.Protocol):
		p.Ports = h.Label
	case len(payload) >= 4:
		p.Ports = binary.BigEndian.Uint32(payload)
	}
	if set = uint32(dst[5]); set > 3 || dst[7] == 255 || slices.Contains([]uint8{4, 41, 43}, p.Protocol) {
		set = noRandomSet
	}
	return h.Bytes(payload), p, set
}

func randomPayload(rng *rand.Rand) []byte {
	payload := make([]byte, rng.IntN(60))
	for i := range payload {
		payload[i] = byte(rng.IntN(2)) // few flows
	}
	return payload
}

func hasPorts(protocol uint8) bool { return slices.Contains([]uint8{6, 17, 33, 132}, protocol) }

// number is that of a packet's set in the program's tables.
func (r *balanceRun) number(t testing.TB, p balance.Packet) (n uint32) {
	t.Helper()
	var err error
	if p.Src6.IsValid() {
		err = r.Routes6.Lookup(destination6{128, p.Dst6.As16()}, &n)
	} else {
		var key [4]byte
		binary.BigEndian.PutUint32(key[:], p.Dst)
		err = r.Routes.Lookup(destination{32, key}, &n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Every decision of the program is the Chooser's, and so is what it keeps.
func TestBalance_decidesLikeTheOracle(t *testing.T) {
	const far = 1 << 62 // ns: more than any machine has been up, less than overflows
	for _, rule := range []string{"rb", "rrb", "drb", "letflow", "letflow:gap=1us", "drill", "drill:d=1,m=0", "drill:d=4,m=2", "drill:d=3,m=1", "drill:d=1,m=2"} {
		t.Run(rule, func(t *testing.T) {
			r := newBalanceRun(t, rule)
			rng := rand.New(rand.NewPCG(1, 5))
			for i := range maxBalanceSets * balance.MaxGroups {
				engines := make([]balance.Engine, ebpf.MustPossibleCPU())
				for k := range engines {
					engines[k].Random = rng.Uint64() | 1
				}
				r.put(t, r.Engines, uint32(i), engines)
			}
			empty := make(map[uint32]uint64)
			c := balance.Chooser{Rule: r.rule, Seed: r.seed, Pairs: make(map[uint32]uint32), Flowlets: make(map[uint32]balance.Flowlet),
				Wait: func(port uint32) uint64 { return empty[port] }}
			var chosen, plain uint64
			var groups [balance.MaxGroups]int
			for n := range 6000 {
				packet, p, set := randomPacket(rng)
				if set == noRandomSet {
					if hash := r.run(t, packet, 0); hash != cleared {
						t.Fatalf("packet %d, encapsulated or to one way, got hash %#x", n, hash)
					}
					plain++
					continue
				}
				number := r.number(t, p)
				if port := 100*set + 1 + rng.Uint32N(64); r.rule.Kind == balance.DRILL {
					q := balanceQueue{Byte: 1, Room: 1, Empty: far + rng.Uint64N(10)}
					if rng.IntN(4) == 0 {
						q.Empty = 0
					}
					empty[port] = q.Empty
					r.put(t, r.Queues, port, &q)
				}
				engine := number
				if r.rule.Kind == balance.DRILL {
					group := c.Group(&r.sets[number], p).Group
					engine += maxBalanceSets * uint32(group)
					groups[group]++
				}
				e := r.engine(t, engine)
				got := r.run(t, packet, 0)
				chosen++
				now := uint64(0)
				if r.rule.Kind == balance.LetFlow { // the time at which the program ran
					place, _ := c.Place(p)
					var f balance.Flowlet
					if err := r.Flowlets.Lookup(place, &f); err != nil {
						t.Fatal(err)
					}
					if now = f.Last; now <= c.Flowlets[place].Last {
						t.Fatalf("packet %d: the flowlet's latest packet came at %d", n, now)
					}
				}
				want := c.Choose(&r.sets[number], &e, p, now)
				if got != want {
					t.Fatalf("packet %d to set %d: hash %#x, want %#x", n, number, got, want)
				}
				if after := r.engine(t, engine); after != e {
					t.Fatalf("packet %d: engine %+v, want %+v", n, after, e)
				}
			}
			var s BalanceStats
			if err := kernel.SumCounters(r.Counters, s.sums()...); err != nil {
				t.Fatal(err)
			}
			if want := (BalanceStats{Chosen: chosen, Plain: plain, Flowlets: c.Begun, Evicted: c.Evicted}); s != want {
				t.Errorf("%+v, want %+v", s, want)
			}
			if r.rule.Kind == balance.DRILL && (groups[1] == 0 || groups[2] == 0) {
				t.Errorf("%v packets by group", groups)
			}
			if r.rule.Kind == balance.LetFlow && c.Begun == 0 {
				t.Error("no flowlet has begun")
			}
		})
	}
}
