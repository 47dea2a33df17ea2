package hostprog

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/internal/elephant"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// elephantRun is the program with its duties for a scheduler, without a network.
type elephantRun struct {
	*sprayed
	top  *topology.Topology // at present
	rng  *rand.Rand
	sent map[elephant.Flow]uint64
	pins map[elephant.Flow]PathPin
	want elephant.ProgramStats
}

func newElephantRun(t *testing.T, policy string) *elephantRun {
	l := sprayLab(t)
	hosts := kerneltest.Hosts(l.Config.Topology)
	r := &elephantRun{sprayed: &sprayed{lab: l, src: hosts[0]}, top: l.Config.Topology, rng: rand.New(rand.NewPCG(21, 4)),
		sent: make(map[elephant.Flow]uint64), pins: make(map[elephant.Flow]PathPin)}
	cfg := r.config(t, policy)
	cfg.Elephants = elephant.PinAndCount
	r.attach(t, cfg)
	r.oracle = sprayOracle{own: cfg.Addresses, table: mustTable(t, r.top, r.src.ID, cfg.Policy), mtu: 1500}
	return r
}

// random is a packet of one of a few flows to other racks, and its flow; the zero Flow of what
// has no ports.
func (r *elephantRun) random() (packet []byte, f elephant.Flow) {
	hosts := kerneltest.Hosts(r.top)
	dst := hosts[2+r.rng.IntN(len(hosts)-2)].Addr
	h := kerneltest.IPv4{ID: uint16(r.rng.Uint32()), Frag: 0x4000, TTL: 64, Protocol: []uint8{6, 6, 6, 17, 1, 132}[r.rng.IntN(6)], Src: r.src.Addr, Dst: dst}
	payload := make([]byte, 20+r.rng.IntN(1300))
	payload[12], payload[13] = 0x50, 0x10
	binary.BigEndian.PutUint16(payload, uint16(r.rng.IntN(3)))
	binary.BigEndian.PutUint16(payload[2:], 80)
	if r.rng.IntN(8) == 0 {
		h.Frag = 0x2000
	}
	if (h.Protocol == 6 || h.Protocol == 17) && h.Frag == 0x4000 {
		f = elephant.Flow{Src: netip.AddrPortFrom(h.Src, binary.BigEndian.Uint16(payload)), Dst: netip.AddrPortFrom(dst, 80), Protocol: h.Protocol}
	}
	return h.Bytes(payload), f
}

// pin pins some flows anew, one to a path that does not exist.
func (r *elephantRun) pin(t *testing.T, now uint64) {
	t.Helper()
	clear(r.pins)
	var list []PathPin
	for range r.rng.IntN(60) {
		_, f := r.random()
		if _, twice := r.pins[f]; twice || !f.Src.IsValid() {
			continue
		}
		pin := PathPin{Flow: f, Path: r.rng.IntN(5), Until: now + uint64(time.Hour)}
		if r.rng.IntN(4) == 0 {
			pin.Until = now
		}
		r.pins[f], list = pin, append(list, pin)
	}
	if err := r.spray.SetPins(list); err != nil {
		t.Fatal(err)
	}
}

// fail takes some links out of use, and others back in.
func (r *elephantRun) fail(t *testing.T) {
	t.Helper()
	r.top = r.top.Whole()
	for l := range r.top.Links() {
		if int(l.ID) >= r.top.NumHosts() && r.rng.IntN(10) == 0 {
			r.top = r.top.Without(l.ID)
		}
	}
	if err := r.spray.SetTopology(r.top); err != nil {
		t.Fatal(err)
	}
	r.oracle.table = mustTable(t, r.top, r.src.ID, mustPolicy(t, r.spray.ways.known.policy.Name))
}

// check passes a packet through the program.
func (r *elephantRun) check(t *testing.T, now uint64) {
	t.Helper()
	packet, f := r.random()
	_, out, err := r.spray.at.Prog.Test(frameOf(packet))
	if err != nil {
		t.Fatal(err)
	}
	w, v := r.oracle.judge(packet)
	if v != encapsulated {
		if len(out) != 14+len(packet) {
			t.Fatalf("%v: %d bytes left of %d: verdict %v", f, len(out), len(packet), v)
		}
		return
	}
	to := netip.AddrFrom4([4]byte(out[14+16:]))
	pin, ok := r.pins[f]
	live := ok && slices.Contains(w.visits, pin.Path)
	if f.Src.IsValid() {
		if r.sent[f] == 0 {
			r.want.Counted++
		}
		r.sent[f] += uint64(len(out))
	}
	switch {
	case live && pin.Until > now:
		r.want.Pinned++
		if want := w.paths.Addr(pin.Path); to != want {
			t.Fatalf("%v, pinned to path %d: by %v, want %v", f, pin.Path, to, want)
		}
		return
	case live:
		r.want.Unpinned++
	}
	if w.chance(packet) {
		return
	}
	if want := w.bounce(w.step(packet)); to != want {
		t.Fatalf("%v, not pinned: by %v, want %v", f, to, want)
	}
}

// A packet goes by its flow's pin while that is valid and its path live, whatever fails, and otherwise as
// the policy has it. Each flow's bytes are counted as they are on the wire.
func TestSpray_elephantsLikeTheOracle(t *testing.T) {
	for _, policy := range []string{"ecmp", "drb", "presto", "luopan"} {
		t.Run(policy, func(t *testing.T) {
			r := newElephantRun(t, policy)
			now, err := kernel.Monotonic()
			if err != nil {
				t.Fatal(err)
			}
			obeyed := r.spray.obeyed
			for range 40 {
				r.pin(t, now)
				for range 2 {
					for range 20 {
						r.check(t, now)
					}
					r.fail(t)
				}
			}
			if r.spray.obeyed != obeyed || obeyed == nil {
				t.Error("what the kernel has was forgotten")
			}
			got, err := r.spray.Elephants()
			if err != nil || got != r.want || got.Pinned == 0 || got.Unpinned == 0 {
				t.Errorf("%+v, %v, want %+v", got, err, r.want)
			}
			counts, err := r.spray.FlowCounts(nil)
			if err != nil || len(counts) != len(r.sent) {
				t.Fatalf("%d flows, %v, want %d", len(counts), err, len(r.sent))
			}
			for _, c := range counts {
				if f := c.Key.Flow(); r.sent[f] != c.Bytes {
					t.Errorf("%v has sent %d bytes, want %d", f, c.Bytes, r.sent[f])
				}
			}
		})
	}
}

// IPv6 is pinned and counted, too.
func TestSpray_elephants6(t *testing.T) {
	s := newSix(t, "drb", func(c *SprayConfig) { c.Elephants = elephant.PinAndCount })
	now, err := kernel.Monotonic()
	if err != nil {
		t.Fatal(err)
	}
	set := s.cfg.Topology6.PathsTo(0, s.dst)
	flow := elephant.Flow{Src: netip.AddrPortFrom(s.src, 1234), Dst: netip.AddrPortFrom(s.dst, 80), Protocol: elephant.TCP}
	var bytes uint64
	for path := range set.Count() {
		if err := s.spray.SetPins([]PathPin{{flow, path, now + uint64(time.Hour)}}); err != nil {
			t.Fatal(err)
		}
		for n := range uint32(6) {
			packet := s.tcp(1234, n*100, 100)
			if to, _ := s.carried(t, packet); to != set.Addr(path) {
				t.Fatalf("pinned to path %d, by %v: left by %v", path, set.Addr(path), to)
			}
			bytes += uint64(14 + 40 + len(packet))
		}
	}
	counts, err := s.spray.FlowCounts(nil)
	if err != nil || !slices.Contains(counts, elephant.Count{Key: flow.Key(), Bytes: bytes}) {
		t.Errorf("%+v, %v, want %d bytes of %v", counts, err, bytes, flow)
	}
}
