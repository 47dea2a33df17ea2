package dataplane

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"weft/flowcell"
	"weft/link"
	"weft/topology"
)

// witness is an Observer that counts.
type witness struct {
	sentBy, lostBy map[string]int // by host and path
	hosts          []netip.Addr
}

func newWitness() *witness { return &witness{sentBy: map[string]int{}, lostBy: map[string]int{}} }

func (r *witness) Active(host, _ netip.Addr, _ time.Duration) {
	r.hosts = append(r.hosts, host)
}

func (r *witness) Sent(host netip.Addr, path int, n int) {
	r.sentBy[witnessed(host, path)] += n
}

func (r *witness) Lost(host netip.Addr, path int, n int, _ time.Duration) {
	r.lostBy[witnessed(host, path)] += n
}

// witnessed names a path to a host.
func witnessed(host netip.Addr, path int) string {
	return fmt.Sprintf("%v/%d", host, path)
}

// sender is one flow whose segments are given paths by a test.
type sender struct {
	*testing.T
	evidence *evidence
	pair     *pair
	flow     flowcell.FiveTuple
}

func newSender(t *testing.T, probes bool) sender {
	e := testEgress(t, fatTree, "drb")
	p := e.to(fatTree, 15)
	flow := flowcell.FiveTuple{
		Src: flowcell.AddressFrom(addrA), Dst: p.dst, SrcPort: 1, DstPort: 2, Proto: flowcell.ProtoTCP,
	}
	return sender{t, newEvidence(3, probes), p, flow}
}

func (s sender) send(path int, seq, size uint32, mss int) {
	s.evidence.sent(s.pair, s.pair.group.out[path], &flowcell.Packet{Flow: s.flow, Seq: seq, Payload: int32(size)}, mss)
}

func (s sender) expect(what string, losses map[int]int) {
	s.Helper()
	r := newWitness()
	s.evidence.report(r, 0, anyHost)
	total := 0
	for path, n := range losses {
		if got := r.lostBy[fmt.Sprintf("10.3.1.3/%d", path)]; got != n {
			s.Errorf("%s: path %d has lost %d, wanted are %d", what, path, got, n)
		}
		total += n
	}
	for k, n := range r.lostBy {
		if total -= n; total < 0 {
			s.Errorf("%s: %s has lost %d", what, k, n)
		}
	}
}

func TestEvidence_aSegmentSentAgainIsItsPathsLoss(t *testing.T) {
	for _, start := range []uint32{1, 1 << 31, 0xffffe000} { // the last wraps
		s := newSender(t, true)
		for i := range uint32(20) {
			s.send(int(i%4), start+i*1000, 1000, 0)
		}
		s.expect("the first time", nil)
		s.send(0, start+3000, 1000, 0)
		s.expect("a hole", map[int]int{3: 1})
		s.send(1, start+3000, 1000, 0)
		s.expect("and again: the path of the second time", map[int]int{0: 1})
		s.send(1, start+9000, 1000, 0)
		s.send(1, start+13000, 1000, 0)
		s.send(1, start+17000, 1000, 0)
		s.expect("the holes of one path", map[int]int{1: 3})
		s.send(2, start+20000, 1000, 0)
		s.expect("what is new", nil)
	}
}

// After a timeout all is sent again, and where a queue overflows a row is lost.
func TestEvidence_aRowSentAgainIsThatOfItsFirstPathOnly(t *testing.T) {
	s := newSender(t, true)
	for i := range uint32(40) {
		s.send(int(i/2%4), i*1000, 1000, 0)
	}
	for i := range uint32(20) {
		s.send(2, 4000+i*1000, 1000, 0)
	}
	s.expect("one by one", map[int]int{2: 2})
	s.send(2, 28000, 10_000, 1000)
	s.expect("as a super-segment", map[int]int{2: 2})
	if n := s.evidence.stats.Runs; n != 18+8 {
		t.Errorf("%d are counted as sent again in one piece, wanted are 26", n)
	}
}

func TestEvidence_superSegmentsAreSentAgainInPieces(t *testing.T) {
	s := newSender(t, true)
	s.send(2, 0, 45*1448, 1448)
	s.send(3, 45*1448, 44*1448+100, 1448)
	s.send(0, 7*1448, 1448, 0)
	s.send(0, 45*1448+2*1448, 2*1448, 1448)
	s.expect("in the middle", map[int]int{2: 1, 3: 2})
	s.send(0, 89*1448, 100, 0)
	s.send(0, 89*1448, 100, 0)
	s.expect("the short end, a probe first", map[int]int{3: 1})
}

func TestEvidence_probesAreNoLosses(t *testing.T) {
	s := newSender(t, true)
	s.send(0, 0, 1000, 0)
	s.send(1, 1000, 1000, 0)
	s.send(2, 1000, 1000, 0)
	s.expect("a tail loss probe", nil)
	s.send(3, 1000, 1000, 0)
	s.expect("a timeout behind it: the path of the original", map[int]int{1: 1})
	s.send(0, 2000, 1, 0)
	for range 5 {
		s.send(1, 2000, 1, 0)
	}
	s.expect("zero-window probes and keep-alives", nil)
	s.send(3, 2000, 1000, 0)
	s.expect("the window opens: what is sent has been begun by the probes", nil)

	s = newSender(t, false)
	s.send(0, 0, 1000, 0)
	s.send(1, 0, 1000, 0)
	s.expect("the last segment, by TCP that does not probe", map[int]int{0: 1})
}

func TestEvidence_aNewConnectionOfTheSamePortsBeginsAnew(t *testing.T) {
	s := newSender(t, true)
	s.send(0, 1<<20, 1000, 0)
	for i := range uint32(8) {
		s.send(int(i%4), 5000+i*1000, 1000, 0) // lower than before
	}
	s.expect("a new connection", nil)
	s.send(0, 5000+6000, 1000, 0)
	s.expect("its loss", map[int]int{2: 1})
}

// Whatever becomes of the tables, a path is blamed for what it had carried only:
// the oracle remembers everything.
func TestEvidence_neverBlamesAPathThatHasNotCarriedIt(t *testing.T) {
	const seed, flows = 17, 40
	rng := rand.New(rand.NewPCG(seed, 0))
	s := newSender(t, true)
	carried := map[string]int{}
	next := [flows]uint32{}
	sent, again, blamed := map[int]int{}, 0, 0
	for range 200_000 {
		f := rng.IntN(flows)
		s.flow.SrcPort = uint16(f)
		path := rng.IntN(4)
		seq := next[f]
		resend := rng.IntN(50) == 0 && seq > 4000
		if resend {
			seq -= 1000 * uint32(2+rng.IntN(3))
			again++
		} else {
			next[f] += 1000
		}
		key := fmt.Sprint(f, "/", seq)
		before, known := carried[key]
		s.send(path, seq, 1000, 0)
		sent[path]++
		for _, l := range s.evidence.losses {
			blamed++
			if !resend || !known || int(l.path) != before || l.host != fatTree.Node(15).Addr {
				t.Fatalf("seed %d: flow %d, sequence %d: %+v, had gone by %d", seed, f, seq, l, before)
			}
		}
		s.evidence.losses = s.evidence.losses[:0]
		carried[key] = path
	}
	if blamed < again*9/10 {
		t.Errorf("seed %d: of %d segments sent again %d are known: %+v", seed, again, blamed, s.evidence.stats)
	}
	r := newWitness()
	s.evidence.report(r, 0, anyHost)
	for path, n := range sent {
		if got := r.sentBy[fmt.Sprintf("10.3.1.3/%d", path)]; got != n {
			t.Errorf("seed %d: path %d has carried %d, %d are counted", seed, path, n, got)
		}
	}
}

func TestEvidence_isBounded(t *testing.T) {
	fabric, _ := topology.FatTree(16)
	e := testEgress(t, fabric, "drb")
	v := newEvidence(3, true)
	send := func(host topology.NodeID, seq uint32) {
		p := e.to(fabric, host)
		flow := flowcell.FiveTuple{Dst: p.dst, Proto: flowcell.ProtoTCP}
		v.sent(p, p.group.out[0], &flowcell.Packet{Flow: flow, Seq: seq, Payload: 10}, 0)
	}
	for round := range 3 {
		for host := topology.NodeID(64); host < 64+MaxTallied+50; host++ {
			send(host, uint32(10*round))
		}
		if len(v.tallied) != MaxTallied || v.stats.Uncounted != uint64(50*(round+1)) {
			t.Fatalf("%d are counted at once; %+v", len(v.tallied), v.stats)
		}
		r := newWitness()
		v.report(r, 0, anyHost)
		if len(r.sentBy) != MaxTallied {
			t.Fatalf("%d have been counted", len(r.sentBy))
		}
	}
	for range 3 * maxLosses {
		send(64, 0)
	}
	if len(v.losses) != maxLosses || v.stats.Unreported != 2*maxLosses || v.stats.Losses != 3*maxLosses {
		t.Errorf("%d losses wait; %+v", len(v.losses), v.stats)
	}
}

func TestEvidence_allocatesNothing(t *testing.T) {
	s := newSender(t, true)
	r := nobody{}
	seq := uint32(0)
	round := func() {
		for i := range 64 {
			s.send(i%4, seq, 1000, 0)
			seq += 1000
		}
		s.send(1, seq-5000, 1000, 0)
		s.evidence.report(r, 0, anyHost)
	}
	round()
	if n := testing.AllocsPerRun(1000, round); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

type nobody struct{}

func (nobody) Active(netip.Addr, netip.Addr, time.Duration) {}
func (nobody) Sent(netip.Addr, int, int)                    {}
func (nobody) Lost(netip.Addr, int, int, time.Duration)     {}

// What egress does in any policy comes to evidence with the path that it has
// taken: a packet that comes again is a loss of the path before.
func TestObserve_knowsThePathOfEveryPolicy(t *testing.T) {
	for _, name := range []string{"ecmp", "rb", "rrb", "drb", "presto", "flowcell-drb", "letflow"} {
		e := testEgress(t, fatTree, name)
		e.evidence = newEvidence(1, false)
		lost := map[string]int{}
		for i := range 100 {
			packet := dataPacket(9, 1000)
			packet[27], packet[26] = byte(4*i), byte(4*i>>8)
			by := wrapOne(t, e, packet, 0).bounce
			if i%10 == 9 {
				wrapOne(t, e, packet, 0)
				lost["10.3.1.3/"+by[2:]]++
			}
			// Nothing that carries no payload is looked at.
			wrapOne(t, e, dataPacket(9, 0), 0)
		}
		r := newWitness()
		e.evidence.report(r, 0, anyHost)
		for k, n := range lost {
			if r.lostBy[k] != n {
				t.Errorf("%s: %s has lost %d, wanted are %d", name, k, r.lostBy[k], n)
			}
		}
		total := 0
		for _, n := range r.sentBy {
			total += n
		}
		if total != 110 || len(r.lostBy) != len(lost) {
			t.Errorf("%s: %d packets are counted: %v", name, total, r.sentBy)
		}
	}
}

func BenchmarkEvidence(b *testing.B) {
	for _, flows := range []int{1, 1000} {
		b.Run(fmt.Sprint(flows), func(b *testing.B) {
			e := testEgress(b, fatTree, "drb")
			p := e.to(fatTree, 15)
			v := newEvidence(3, true)
			flow := flowcell.FiveTuple{Src: flowcell.AddressFrom(addrA), Dst: p.dst, DstPort: 2, Proto: flowcell.ProtoTCP}
			seq := uint32(0)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				flow.SrcPort = uint16(i / 16 % flows)
				v.sent(p, p.group.out[i%4], &flowcell.Packet{Flow: flow, Seq: seq, Payload: 1448}, 0)
				seq += 1448
			}
		})
	}
}

// A loss is told at once, and nothing else is.
func TestForward_tellsOfLossesAtOnce(t *testing.T) {
	e := testEgress(t, fatTree, "drb")
	e.evidence = newEvidence(1, false)
	told := 0
	e.suspect = func() { told++ }
	forward := func(seq uint32) {
		b := dataPacket(9, 1000)
		binary.BigEndian.PutUint32(b[24:], seq)
		e.forward([][]byte{append(make([]byte, link.SuperHeadroom), b...)}, []int{len(b)})
	}
	for i := range uint32(10) {
		forward(1000 * i)
	}
	if told != 0 {
		t.Fatalf("told %d times of nothing", told)
	}
	if forward(4000); told != 1 {
		t.Fatalf("told %d times of a loss", told)
	}
	e.Report(nobody{}, 0)
	if forward(10_000); told != 1 {
		t.Errorf("told again of what has been reported")
	}
}

func anyHost(netip.Addr) bool { return true }
