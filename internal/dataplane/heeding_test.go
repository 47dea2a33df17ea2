package dataplane

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"weft/drb"
	"weft/encap"
	"weft/flowcell"
	"weft/link"
	"weft/policy"
	"weft/resequencer"
)

// diary is the selector of a flow that writes down what it is told. Its paths go round.
type diary struct {
	next int
	told *[]string
}

func (d *diary) Next(live []int, _ time.Duration) int {
	d.next++
	return live[d.next%len(live)]
}

func (d *diary) Acked(path int, marked bool, now time.Duration) {
	*d.told = append(*d.told, fmt.Sprintf("acked 3.%d %v %v", path, marked, now))
}

func (d *diary) Lost(path int, timeout bool, now time.Duration) {
	*d.told = append(*d.told, fmt.Sprintf("lost 3.%d %v %v", path, timeout, now))
}

// heedful is a policy whose selectors are diaries.
func heedful(told *[]string, made *int) policy.Policy {
	p := policy.Policy{Name: "heedful", Unit: flowcell.Unit{Kind: flowcell.UnitPacket}, Rule: drb.Random}
	return p.Heeds("a diary", func(uint64) policy.Selector {
		*made++
		return &diary{told: told}
	})
}

// heeder is an Egress of such a policy, and the Ingress beside it.
type heeder struct {
	*testing.T
	*Egress
	in    *Ingress[*frame]
	clock *stillClock
	told  []string
	made  int
}

func newHeeder(t *testing.T) *heeder {
	h := &heeder{T: t, Egress: testEgress(t, fatTree, "rb"), clock: &stillClock{}}
	h.Egress.clock = h.clock
	p := heedful(&h.told, &h.made)
	h.setPolicy(p, policy.Options{}, awareConfig{policy: p, seed: 1}, false)
	h.in = newIngress(newPlainSource(nil), newToKernel(&recorder{max: link.MaxSuperLen}), resequencer.Config{}, &handClock{})
	h.in.accepts = func(*flowcell.Packet, []byte) bool { return true }
	h.in.relays, h.in.flights, h.in.acks = true, h.Egress.flights, h.receiveAcks
	return h
}

// send sends size bytes of a flow from seq on, and returns the path.
func (h *heeder) send(port uint16, seq uint32, size int) string {
	h.Helper()
	b := dataPacket(port, size)
	binary.BigEndian.PutUint32(b[24:], seq)
	return wrapOne(h.T, h.Egress, b, h.clock.Time).bounce
}

// answer has the flow's other end acknowledge everything before ack, with flags and
// options.
func (h *heeder) answer(port uint16, ack uint32, flags byte, options ...byte) {
	h.Helper()
	b := dataPacket(port, len(options))
	copy(b[12:16], dataPacket(port, 0)[16:20])
	copy(b[16:20], dataPacket(port, 0)[12:16])
	copy(b[20:22], b[22:24])
	binary.BigEndian.PutUint16(b[22:], binary.BigEndian.Uint16(dataPacket(port, 0)[20:]))
	binary.BigEndian.PutUint32(b[28:], ack)
	b[32], b[33] = byte(5+len(options)/4)<<4, flowcell.FlagACK|flags
	copy(b[40:], options)
	h.in.Receive(withTCPChecksum(fixed(b)))
}

func (h *heeder) expect(what string, want ...string) {
	h.Helper()
	if !slices.Equal(h.told, want) {
		h.Errorf("%s: told is %q, wanted is %q", what, h.told, want)
	}
	h.told = nil
}

// sack is an option behind two that pad it.
func sack(blocks ...uint32) []byte {
	b := []byte{1, 1, 5, byte(2 + 4*len(blocks))}
	for _, n := range blocks {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}

func TestHeeding_isToldOfWhatIsAcknowledged(t *testing.T) {
	h := newHeeder(t)
	by := make([]string, 12)
	for i := range by {
		by[i] = h.send(1, uint32(1000*i), 1000)
	}
	if len(slices.Compact(slices.Clone(by))) < 4 {
		t.Errorf("the selector's paths are not taken: %v", by)
	}
	h.clock.Time = 9
	acked := func(i int, marked bool) string { return fmt.Sprintf("acked %s %v 9ns", by[i], marked) }
	h.answer(1, 2000, 0)
	h.expect("two", acked(0, false), acked(1, false))
	h.answer(1, 3000, flowcell.FlagECE)
	h.expect("one, with an echo of congestion", acked(2, true))
	h.answer(1, 3000, 0, sack(5000, 7000)...)
	h.expect("a block", acked(5, false), acked(6, false))
	h.answer(1, 3000, 0, sack(9000, 10_000, 5000, 7000)...)
	h.expect("two blocks, the first is new", acked(9, false))
	h.send(1, 3000, 1000)
	h.expect("a hole is sent again", fmt.Sprintf("lost %s false 9ns", by[3]))
	h.clock.Time += time.Second
	h.send(1, 7000, 1000)
	h.expect("another, after a pause", fmt.Sprintf("lost %s true 1.000000009s", by[7]))
	h.clock.Time = 9
	h.answer(1, 10_000, 0)
	h.expect("what was sent again tells nothing", acked(4, false), acked(8, false))
	if h.made != 1 {
		t.Errorf("%d selectors are made for one flow", h.made)
	}
}

// Who has not seen what was sent moves nobody's paths.
func TestHeeding_believesOnlyWhoSeesWhatIsSent(t *testing.T) {
	h := newHeeder(t)
	for i := range uint32(4) {
		h.send(1, 1<<20+1000*i, 1000)
	}
	h.answer(1, 1<<20+4001, 0)
	h.answer(1, 1<<19, 0, sack(1<<20, 1<<20+4000)...)
	h.answer(2, 1<<20+1000, 0)
	h.expect("made up")
	h.answer(1, 1<<20+1000, 0, sack(1<<20+2000, 1<<20+9000)...)
	if len(h.told) != 3 {
		t.Errorf("a block beyond what was sent: %q", h.told)
	}
}

// What carries no payload is acknowledged by nothing, and fills no table.
func TestHeeding_keepsNothingOfWhatCarriesNoData(t *testing.T) {
	h := newHeeder(t)
	for port := range uint16(100) {
		if by := h.send(port, 0, 0); by == "none" {
			t.Fatal("an acknowledgement is dropped")
		}
		syn := dataPacket(port, 0)
		syn[33] = flowcell.FlagSYN
		datagram := with(dataPacket(port, 100), func(b []byte) { b[9] = flowcell.ProtoUDP })
		for _, b := range [][]byte{syn, datagram} {
			if w := wrapOne(t, h.Egress, b, 0); w.bounce == "none" {
				t.Fatal("dropped")
			}
		}
	}
	if n := h.lane.heeding.flows.Len(); n != 0 || h.made != 0 {
		t.Errorf("%d flows are remembered, %d selectors made", n, h.made)
	}
}

// The selector chooses among what is live, and in order: nothing else is taken.
func TestHeeding_paths(t *testing.T) {
	h := newHeeder(t)
	dead := h.send(1, 0, 1000)
	n, _ := fatTree.Lookup(dead)
	h.SetTopology(fatTree.WithoutNode(n.ID))
	for i := range uint32(20) {
		if by := h.send(1, 1000*(i+1), 1000); by == dead || by == "none" {
			t.Fatalf("packet %d goes by %s, %s is dead", i, by, dead)
		}
	}
	h.answer(1, 2000, 0)
	if len(h.told) != 2 { // of the dead path, too
		t.Errorf("after the change it is told %q", h.told)
	}
}

// Losses that only the policy asks for are told to nobody else; those that others ask for,
// to both.
func TestHeeding_besideEvidence(t *testing.T) {
	h := newHeeder(t)
	lose := func() {
		for i := range uint32(4) {
			h.send(1, 1000*i, 1000)
		}
		h.send(1, 1000, 1000)
		if len(h.told) == 0 {
			t.Error("the selector is told of no loss")
		}
		h.told = nil
	}
	lose()
	r := newWitness()
	h.Report(r, 0)
	if len(r.hosts)+len(r.lostBy) > 0 {
		t.Errorf("reported is %+v", r)
	}
	h.Remember(true)
	lose()
	h.Report(r, 0)
	if len(r.lostBy) != 1 || len(r.sentBy) == 0 {
		t.Errorf("reported is %+v", r)
	}
	other, _ := policy.New("drb", policy.Options{})
	h.setPolicy(other, policy.Options{}, awareConfig{policy: other}, false)
	if h.evidence == nil || len(h.evidence.heeding) > 0 || h.Egress.flights.heeded.Load() {
		t.Error("after another policy, evidence is gone or still heeded")
	}
	h.answer(1, 1000, 0)
	h.receiveAcks([]arrivedAck{{}})
	h.expect("by another policy")

	h = newHeeder(t)
	h.setPolicy(other, policy.Options{}, awareConfig{policy: other}, false)
	if h.evidence != nil {
		t.Error("nobody asks for evidence")
	}
}

func TestHeeding_allocatesNothing(t *testing.T) {
	h := newHeeder(t)
	quiet := policy.Policy{Name: "quiet", Unit: flowcell.Unit{Kind: flowcell.UnitPacket}, Rule: drb.Random}.
		Heeds("nothing", func(uint64) policy.Selector { return new(unmoved) })
	h.setPolicy(quiet, policy.Options{}, awareConfig{policy: quiet, seed: 1}, false)
	buf := dataPacket(1, 1000)
	out := make([]byte, 0, 2000)
	seq := uint32(0)
	acks := []arrivedAck{{}}
	var pkt flowcell.Packet
	_ = pkt.Parse(buf)
	acks[0].flow = pkt.Flow
	round := func() {
		for range 8 {
			binary.BigEndian.PutUint32(buf[24:], seq)
			out = append(append(out[:0], make([]byte, encap.MaxOverhead)...), buf...)
			_ = h.wrapOne(out, 0)
			seq += 1000
		}
		acks[0].ack.All = seq
		h.receiveAcks(acks)
	}
	round()
	if n := testing.AllocsPerRun(500, round); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if f := h.lane.heeding.flows.Get(&pkt.Flow, 0); f == nil {
		t.Error("the flow is not known")
	}
}

type unmoved struct{}

func (*unmoved) Next(live []int, _ time.Duration) int { return live[0] }
func (*unmoved) Acked(int, bool, time.Duration)       {}
func (*unmoved) Lost(int, bool, time.Duration)        {}

func TestSackOf(t *testing.T) {
	header := func(options ...byte) []byte {
		b := make([]byte, 20, 60)
		b = append(b, options...)
		b[12] = byte(len(b)/4) << 4
		return b
	}
	for _, c := range []struct {
		what     string
		header   []byte
		from, to uint32
	}{
		{"no options", header(), 0, 0},
		{"a block", header(sack(3, 4)...), 3, 4},
		{"behind timestamps", header(append(append([]byte{8, 10, 0, 0, 0, 0, 0, 0, 0, 0}, sack(7, 9)...), 1, 1)...), 7, 9},
		{"the first of three", header(sack(7, 9, 1, 2, 3, 4)...), 7, 9},
		{"behind the end", header(append([]byte{0, 1, 1, 1}, sack(7, 9)...)...), 0, 0},
		{"no length", header(1, 1, 1, 5), 0, 0},
		{"a length of nothing", header(5, 0, 1, 1), 0, 0},
		{"longer than the header", header(1, 1, 5, 10, 0, 0, 0, 1), 0, 0},
		{"half a block", header(1, 1, 5, 6, 0, 0, 0, 1), 0, 0},
	} {
		if from, to := sackOf(c.header); from != c.from || to != c.to {
			t.Errorf("%s: %d to %d, wanted is %d to %d", c.what, from, to, c.from, c.to)
		}
	}
}

// Whatever arrives, nothing panics, and what was not sent is told to no selector.
func FuzzAcks(f *testing.F) {
	f.Add(append(make([]byte, 40), sack(1, 2)...), uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, ack uint32) {
		var pkt flowcell.Packet
		if pkt.Parse(b) != nil || !pkt.IsTCP() {
			return
		}
		a := newArrivedAck(&pkt, b[:pkt.Length], ack)
		h := newHeeder(t)
		h.receiveAcks([]arrivedAck{a})
		if len(h.told) > 0 {
			t.Errorf("told of %q", h.told)
		}
	})
}

// A policy of some flows only heeds what becomes of those.
func TestHeeding_inALaneBeside(t *testing.T) {
	e := testEgress(t, fatTree, "drb")
	if e.evidence != nil || e.flights.heeded.Load() {
		t.Error("drb heeds")
	}
	if _, err := e.Policy("reps"); err != nil {
		t.Fatal(err)
	}
	if len(e.heeding) != 1 || e.heeding[0] != e.lanes[1].heeding || e.evidence == nil || !e.flights.heeded.Load() {
		t.Errorf("%d lanes heed, evidence %v", len(e.heeding), e.evidence != nil)
	}
}
