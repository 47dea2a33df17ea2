package tcp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"weft/internal/timerq"
)

// road is a way through a network: a bottleneck with a queue, then a delay.
type road struct {
	packet, delay time.Duration // what a packet takes, one way
	room          int           // packets
	loss          float64       // of packets and acknowledgements
	dead          bool
	freeAt        time.Duration
}

// party is a connection: of one sender, or of a Group with several.
type party struct {
	g         *Group // nil: plain TCP
	senders   []*Sender
	receivers []*Receiver
	roads     []*road
	whole     Receiver // of the data of all subflows
	timers    []time.Duration
	delivered int64
	sentMost  int64 // the data's end
}

func (p *party) done() bool {
	if p.g != nil {
		return p.g.Done()
	}
	return p.senders[0].Done()
}

// crossing is several parties in one network.
type crossing struct {
	config  Config
	rng     *rand.Rand
	parties []*party
	events  timerq.Queue[step]
	now     time.Duration
	onTime  func(now time.Duration)
	total   int64
}

// step is an event of a party's subflow.
type step struct {
	party, sub int
	kind       uint8 // packet, acknowledgement, timer
	seg        Segment
	ack        Ack
	cum        int64 // of the data
	echo       time.Duration
}

// join adds a party that sends total bytes by these roads, with a Group if it is linked.
func (n *crossing) join(linked bool, roads ...*road) *party {
	p := &party{roads: roads, timers: make([]time.Duration, len(roads))}
	total := n.total
	if linked {
		p.g = new(Group)
		p.g.Start(&n.config, total)
		total = 0
	}
	p.whole.Start(&n.config, n.total)
	for range roads {
		s, r := new(Sender), new(Receiver)
		r.Start(&n.config, total)
		if s.Start(&n.config, total); linked {
			p.g.Add(s)
		}
		p.senders, p.receivers = append(p.senders, s), append(p.receivers, r)
	}
	n.parties = append(n.parties, p)
	return p
}

func newCrossing(t *testing.T, c Config, total int64, seed uint64) *crossing {
	t.Helper()
	c, err := c.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return &crossing{config: c, total: total, rng: rand.New(rand.NewPCG(seed, 7))}
}

// run goes on until a time, or until all are done. An error says what did not hold.
func (n *crossing) run(until time.Duration) error {
	for i := range n.parties {
		for k := range n.parties[i].senders {
			n.send(i, k)
		}
	}
	for n.events.Len() > 0 && n.events.Next() <= until {
		n.now = n.events.Next()
		if n.onTime != nil {
			n.onTime(n.now)
		}
		if err := n.step(n.events.Pop()); err != nil {
			return fmt.Errorf("at %v: %w", n.now, err)
		}
	}
	for i, p := range n.parties {
		switch {
		case n.total == 0:
		case !p.done():
			return fmt.Errorf("party %d: not done, %d of %d delivered", i, p.delivered, n.total)
		case p.delivered != n.total:
			return fmt.Errorf("party %d: done, %d of %d delivered", i, p.delivered, n.total)
		}
	}
	return nil
}

func (n *crossing) step(e step) error {
	p := n.parties[e.party]
	s := p.senders[e.sub]
	switch e.kind {
	case 0:
		a, bytes := p.receivers[e.sub].Data(e.seg.Seq, e.seg.Len, false)
		if p.g != nil {
			from, length := int64(0), int32(0)
			if at, ok := s.Data(e.seg.Seq); ok {
				from, length = at, e.seg.Len
			}
			var whole Ack
			whole, bytes = p.whole.Data(from, length, false)
			e.cum = whole.Cum
		}
		p.delivered += bytes
		if p.delivered > n.total && n.total > 0 {
			return fmt.Errorf("party %d: %d bytes of %d", e.party, p.delivered, n.total)
		}
		if r := p.roads[e.sub]; !r.dead && n.rng.Float64() >= r.loss {
			e.ack, e.kind = a, 1
			e.ack.Echo = e.echo
			n.events.Add(n.now+r.delay, e)
		}
		return nil
	case 1:
		if p.done() {
			return nil
		}
		s.Ack(e.ack, n.now)
		if p.g != nil && p.g.Acked(e.cum) {
			n.sendAll(e.party)
		}
	case 2:
		if p.timers[e.sub] == n.now {
			p.timers[e.sub] = 0
		}
		if p.done() {
			return nil
		}
		s.Timeout(n.now)
		if p.g != nil {
			n.sendAll(e.party)
		}
	}
	n.send(e.party, e.sub)
	if p.g != nil && p.g.next-p.g.una > n.config.window() {
		return fmt.Errorf("party %d: %d segments beyond what has arrived, window %d", e.party, p.g.next-p.g.una, n.config.window())
	}
	return nil
}

func (n *crossing) sendAll(party int) {
	for _, sub := range n.parties[party].g.Order() {
		n.send(party, sub)
	}
}

// send sends what a subflow may, and sees to its timer.
func (n *crossing) send(party, sub int) {
	p := n.parties[party]
	s, r := p.senders[sub], p.roads[sub]
	for !p.done() {
		seg, ok := s.Next(n.now)
		if !ok {
			break
		}
		if queue := max(r.freeAt-n.now, 0); r.dead || queue > time.Duration(r.room)*r.packet || n.rng.Float64() < r.loss {
			continue
		}
		r.freeAt = max(r.freeAt, n.now) + r.packet
		e := step{party: party, sub: sub, seg: seg, echo: n.now}
		if seg.Retransmit {
			e.echo = -1
		}
		n.events.Add(r.freeAt+r.delay, e)
	}
	if at, ok := s.Deadline(); ok && (p.timers[sub] == 0 || at < p.timers[sub]) {
		p.timers[sub] = at
		n.events.Add(at, step{party: party, sub: sub, kind: 2})
	}
}

// TestGroup_deliversEveryByteOnce whatever befalls packets, and where roads die.
func TestGroup_deliversEveryByteOnce(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := newCrossing(t, Config{
			WindowBytes: []int{64 << 10, 256 << 10, 4000, 1 << 20}[seed%4], RTOMin: time.Millisecond,
			Handshake: seed%3 == 0, DCTCP: seed%5 == 0, Uncoupled: seed%7 == 0,
		}, []int64{1, 1460, 1461, 30_000, 700_001, 2_000_000}[seed%6], seed)
		roads := make([]*road, 1+rng.IntN(8))
		for i := range roads {
			roads[i] = &road{
				packet: 1200, delay: time.Duration(10+rng.IntN(200)) * time.Microsecond, room: 5 + rng.IntN(60),
				loss: []float64{0, .01, .1, .3}[rng.IntN(4)],
			}
		}
		n.join(true, roads...)
		// All but one die, one after the other.
		n.onTime = func(now time.Duration) {
			for i, r := range roads[1:] {
				r.dead = r.dead || seed%2 == 0 && now > time.Duration(i+1)*500*time.Microsecond
			}
		}
		if err := n.run(10 * time.Hour); err != nil {
			t.Errorf("seed %d, %d subflows: %v", seed, len(roads), err)
		}
	}
}

// TestGroup_isFairToTCP: over one bottleneck two subflows together get what one TCP gets.
// Uncoupled they get twice as much.
func TestGroup_isFairToTCP(t *testing.T) {
	share := func(uncoupled bool) float64 {
		ours, theirs := int64(0), int64(0)
		for seed := range uint64(4) {
			n := newCrossing(t, Config{WindowBytes: 1 << 20, Uncoupled: uncoupled, RTOMin: time.Millisecond}, 0, seed)
			// Losses at random keep them from falling into step.
			r := &road{packet: 12 * time.Microsecond, delay: 200 * time.Microsecond, room: 60, loss: .0005}
			group, tcp := n.join(true, r, r), n.join(false, r)
			if err := n.run(1500 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
			ours += group.delivered
			theirs += tcp.delivered
		}
		return float64(ours) / float64(ours+theirs)
	}
	linked, uncoupled := share(false), share(true)
	t.Logf("of the link: %.3f, uncoupled %.3f", linked, uncoupled)
	if linked < .42 || linked > .58 {
		t.Errorf("two linked subflows get %.3f of a link that they share with a TCP, want half", linked)
	}
	if uncoupled < .62 || uncoupled > .72 {
		t.Errorf("two subflows of their own get %.3f, want two thirds", uncoupled)
	}
}

// TestGroup_movesToWhereThereIsRoom: of two roads the one that TCPs crowd is left to them.
func TestGroup_movesToWhereThereIsRoom(t *testing.T) {
	part := func(uncoupled bool) float64 {
		n := newCrossing(t, Config{WindowBytes: 1 << 20, Uncoupled: uncoupled, RTOMin: time.Millisecond}, 0, 1)
		crowded := &road{packet: 12 * time.Microsecond, delay: 200 * time.Microsecond, room: 60, loss: .0001}
		free := &road{packet: 12 * time.Microsecond, delay: 200 * time.Microsecond, room: 60, loss: .0001}
		p := n.join(true, crowded, free)
		for range 2 {
			n.join(false, crowded)
		}
		if err := n.run(2 * time.Second); err != nil {
			t.Fatal(err)
		}
		by := func(i int) float64 { return float64(p.senders[i].board.una) }
		return by(0) / (by(0) + by(1))
	}
	linked, uncoupled := part(false), part(true)
	t.Logf("by the crowded road: %.3f, uncoupled %.3f", linked, uncoupled)
	if linked > .8*uncoupled {
		t.Errorf("linked %.3f of the data go by the crowded road, uncoupled %.3f", linked, uncoupled)
	}
}

// rfc6356 is by how many bytes the window of subflow i grows for acknowledged bytes, as §3
// of the RFC writes it.
func rfc6356(windows, rtts []float64, i int, bytes, mss float64) float64 {
	total, most, sum := 0., 0., 0.
	for k, w := range windows {
		total += w
		most = max(most, w/(rtts[k]*rtts[k]))
		sum += w / rtts[k]
	}
	alpha := total * most / (sum * sum)
	return min(alpha*bytes*mss/total, bytes*mss/windows[i])
}

func TestLinked_growsAsRFC6356Says(t *testing.T) {
	const mss = 1460
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 2))
		n := 1 + rng.IntN(MaxSubflows)
		var l linked
		windows, rtts := make([]float64, n), make([]float64, n)
		for i := range n {
			s := &Sender{cwnd: int32(1+rng.IntN(700)) * mss, srtt: time.Duration(1e4 + rng.IntN(1e7))}
			windows[i], rtts[i] = float64(s.cwnd), s.srtt.Seconds()
			l.note(i, s)
		}
		for i := range n {
			needs := l.needs(int32(windows[i]))
			got, want := mss*mss/float64(needs), rfc6356(windows, rtts, i, mss, mss)
			if math.Abs(got/want-1) > 1e-3 { // needs is of whole bytes
				t.Errorf("seed %d, subflow %d of %d: a segment's acknowledgement adds %v bytes, the RFC %v", seed, i, n, got, want)
			}
			if needs < int32(windows[i]) {
				t.Errorf("seed %d: grows faster than a TCP", seed)
			}
		}
	}
}

// TestGroup_windowsFollowRFC6356 acknowledgement by acknowledgement, in whole segments.
func TestGroup_windowsFollowRFC6356(t *testing.T) {
	c, err := Config{WindowBytes: maxWindow}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	var g Group
	g.Start(&c, 0)
	rtts := []time.Duration{time.Millisecond, 3 * time.Millisecond, 2 * time.Millisecond}
	windows, rtt := make([]float64, 3), make([]float64, 3)
	senders := make([]*Sender, 3)
	for i := range senders {
		senders[i] = new(Sender)
		g.Add(senders[i])
		senders[i].cwnd = int32(20+30*i) * int32(c.MSS)
		senders[i].ssthresh = senders[i].cwnd
		windows[i], rtt[i] = float64(senders[i].cwnd), rtts[i].Seconds()
		senders[i].sample(rtts[i])
		g.note(i, senders[i])
	}
	begin := append([]float64(nil), windows...)
	now := time.Duration(0)
	acked := int64(0)
	for range 20000 {
		i := rand.New(rand.NewPCG(uint64(acked), 3)).IntN(3)
		s := senders[i]
		for {
			if _, ok := s.Next(now); !ok {
				break
			}
		}
		windows[i] += rfc6356(windows, rtt, i, float64(c.MSS), float64(c.MSS))
		now += time.Microsecond
		acked += int64(c.MSS)
		s.Ack(Ack{Cum: (s.board.una + 1) * int64(c.MSS), Echo: now - rtts[i]}, now)
		g.Acked(acked)
	}
	for i, s := range senders {
		grew, want := float64(s.cwnd)-begin[i], windows[i]-begin[i]
		t.Logf("subflow %d grew by %.1f segments, by the RFC %.1f", i, grew/float64(c.MSS), want/float64(c.MSS))
		if math.Abs(grew-want) > .02*want+2*float64(c.MSS) {
			t.Errorf("subflow %d grew by %v bytes, by the RFC %v", i, grew, want)
		}
	}
}
