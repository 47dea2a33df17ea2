package probe

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/bucket"
	"weft/luopan"
)

var carriers = []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6}

// A probe names the path by which it goes; its answer tells the table, and whose rack it
// is about.
func TestSampler_probes(t *testing.T) {
	for _, carrier := range carriers {
		b := newBench(t, carrier, true, bucket.Bucket{})
		if b.Due(time.Hour) || b.Next() != luopan.Never {
			t.Fatalf("%v: something is due at %v, without traffic", carrier, b.Next())
		}
		b.choose(peer, 1)
		if !b.Due(1) || b.Next() > 1 {
			t.Fatalf("%v: the next is due at %v", carrier, b.Next())
		}
		b.Pump(1)
		probes := b.taken()
		if len(probes) != 2 || b.Due(1) {
			t.Fatalf("%v: %d probes", carrier, len(probes))
		}
		for i, p := range probes {
			want := sent{encap.Sample{Path: p.Sample.Path, Token: p.Token, From: own, To: peer}, int(p.Sample.Path), p.id, encap.SampleLen + carrier.Overhead()}
			if carrier == encap.CarrierIPIP {
				want.id = i + 1
			}
			if p != want {
				t.Errorf("%v: sent is %+v, want %+v", carrier, p, want)
			}
		}
		edge, learned := b.Take(b.answered(probes[0], nil), 20_000)
		if rack, _ := b.top.RackAt(peer); !learned || edge != rack {
			t.Errorf("%v: an answer is of rack %d, %v", carrier, edge, learned)
		}
		if path, ok := b.choose(peer, 30_000); !ok || path != probes[0].path {
			t.Errorf("%v: chosen is %d, %v", carrier, path, ok)
		}
		d := b.table.Destinations()
		if len(d) != 1 || len(d[0].Samples) != 1 || d[0].Samples[0].Queue != 3 || d[0].Samples[0].Meters != 5 || d[0].RTT != 19_999 {
			t.Errorf("%v: known is %+v", carrier, d)
		}
		b.want(SampleStats{Sent: 2, Bytes: 2 * uint64(encap.SampleLen+carrier.Overhead())})
		if n := b.Stats().Table; n.Probes != 2 || n.Answers != 1 {
			t.Errorf("%v: %+v", carrier, n)
		}
	}
}

// All that an answer says is handed on.
func TestSampler_handsAnswersOn(t *testing.T) {
	b := newBench(t, encap.CarrierIPIP, true, bucket.Bucket{})
	b.choose(peer, 1)
	b.Pump(1)
	p := b.taken()
	b.Take(b.answered(p[0], func(a *encap.Sample) { a.Queue, a.Meters, a.Marked, a.Received = 0, 0, false, 5_000_000 }), 10_000)
	b.Take(b.answered(p[1], func(a *encap.Sample) { a.Queue, a.Meters, a.Marked, a.Received = 0, 0, true, 4_000_000 }), 10_000)
	d := b.table.Destinations()
	if len(d) != 1 || len(d[0].Samples) != 2 || d[0].Metric == luopan.QueueBytes || d[0].Samples[0].Path != p[0].path || !d[0].Samples[1].Marked || d[0].Samples[0].Marked {
		t.Errorf("known is %+v", d)
	}
	// By two clocks: the one that came in later has queued.
	b.useTable()
	b.choose(peer, 1)
	b.Pump(1)
	p = b.taken()
	b.Take(b.answered(p[0], func(a *encap.Sample) { a.Meters, a.Received = 0, 5_000_000 }), 10_000)
	b.Take(b.answered(p[1], func(a *encap.Sample) { a.Meters, a.Received = 0, 4_000_000 }), 10_000)
	if d := b.table.Destinations(); len(d) != 1 || d[0].Metric != luopan.OneWay || d[0].Samples[0].Path != p[1].path {
		t.Errorf("known is %+v", d)
	}
}

// What is no answer to a probe teaches nothing, and each is counted by its cause.
func TestSampler_believesNoStrangers(t *testing.T) {
	b := newBench(t, encap.CarrierIPIP, true, bucket.Bucket{})
	b.choose(peer, 1)
	b.Pump(1)
	p := b.taken()[0]
	broken := b.answered(p, nil)
	broken[40] ^= 1
	newer := b.answered(p, nil)
	newer[encap.SampleLen-24] = 9 // the version
	for name, packet := range map[string][]byte{
		"a broken checksum": broken,
		"another version":   newer,
		"cut short":         b.answered(p, nil)[:encap.SampleLen-1],
		"nothing":           nil,
		"another token":     b.answered(p, func(a *encap.Sample) { a.Token ^= 1 << 40 }),
		"another path":      b.answered(p, func(a *encap.Sample) { a.Path ^= 1 }),
		"another host":      b.answered(p, func(a *encap.Sample) { a.From = netip.MustParseAddr("10.3.1.2") }),
	} {
		was := slices.Clone(packet)
		if edge, learned := b.Take(packet, 1000); learned || edge != 0 {
			t.Errorf("%s: learned of %d", name, edge)
		}
		if !slices.Equal(packet, was) {
			t.Errorf("%s: the packet is changed", name)
		}
	}
	b.want(SampleStats{Sent: 2, Bytes: 2 * (encap.SampleLen + 20), Forged: 4})
	if n := b.Stats().Table; n.Answers != 0 || n.Unknown != 1 || n.WrongPath != 1 || n.WrongHost != 1 {
		t.Errorf("%+v", n)
	}
	if _, learned := b.Take(b.answered(p, nil), 1000); !learned {
		t.Error("the true answer is not believed")
	}
	if _, learned := b.Take(b.answered(p, nil), 1000); learned || b.Stats().Table.Replayed != 1 {
		t.Error("an answer is believed twice")
	}
}

// Without a table nobody is asked, and answers are not wanted.
func TestSampler_withoutATable(t *testing.T) {
	b := newBench(t, encap.CarrierIPIP, true, bucket.Bucket{})
	b.choose(peer, 1)
	b.Pump(1)
	p := b.taken()[0]
	b.Use(nil)
	b.Pump(time.Second)
	if _, learned := b.Take(b.answered(p, nil), time.Second); learned || len(b.taken()) > 0 || b.Due(time.Hour) || b.Next() != luopan.Never {
		t.Errorf("learned %v, due at %v", learned, b.Next())
	}
	b.Take(b.ask(peer, 1), time.Second)
	if len(b.taken()) != 1 {
		t.Error("a peer is not answered")
	}
	b.want(SampleStats{Sent: 2, Bytes: 2 * (encap.SampleLen + 20), Unasked: 1, Answered: 1})
	if n := b.Stats().Table; n != (luopan.Stats{}) {
		t.Errorf("%+v", n)
	}
}

// A peer is answered by the path by which it has asked, live or not.
func TestSampler_answers(t *testing.T) {
	for _, carrier := range carriers {
		for _, samples := range []bool{false, true} {
			b := newBench(t, carrier, samples, bucket.Bucket{})
			down, err := b.top.LinkByName("a0.2-c1.1") // of path 0
			if err != nil {
				t.Fatal(err)
			}
			b.top = b.top.Without(down.ID)
			for path := range 4 {
				packet := b.ask(peer, path)
				mark(packet) // on its way
				was := slices.Clone(packet)
				now := time.Duration(path) * time.Second // also at time 0, which an answer must not say
				if _, learned := b.Take(append(packet, 1, 2, 3), now); learned || !slices.Equal(packet, was) {
					t.Errorf("%v: learned of a question, or changed it", carrier)
				}
				want := sent{encap.Sample{Path: uint32(path), ACK: true, Queue: 9, Meters: 2, Marked: true, Token: 7, Received: max(now, 1), From: own, To: peer},
					path, 0, encap.SampleLen + carrier.Overhead()}
				if carrier == encap.CarrierIPIP {
					want.id = path + 1
				}
				if got := b.taken(); len(got) != 1 || got[0] != want {
					t.Errorf("%v: answered is %+v, want %+v", carrier, got, want)
				}
			}
			b.want(SampleStats{Answered: 4})
			for _, no := range [][]byte{
				b.ask(peer, 4),                               // no such path
				b.ask(peer, encap.MaxSamplePath),             //
				b.ask(netip.MustParseAddr("10.0.0.3"), 0),    // of the same rack
				b.ask(own, 0),                                //
				b.ask(netip.MustParseAddr("10.3.1.1"), 0),    // a switch
				b.ask(netip.MustParseAddr("192.168.1.1"), 0), // of another net
			} {
				b.Take(no, 10*time.Second)
			}
			if got := b.taken(); len(got) > 0 {
				t.Errorf("%v: answered is %+v", carrier, got)
			}
			b.want(SampleStats{Answered: 4, Refused: 6})
		}
	}
}

// Answers keep to their rate; what is not answered for another reason does not count
// against it.
func TestSampler_boundsAnswers(t *testing.T) {
	b := newBench(t, encap.CarrierIPIP, false, bucket.New(10, time.Second))
	for range 100 {
		b.Take(b.ask(peer, 99), 0)
	}
	for range 100 {
		b.Take(b.ask(peer, 1), 0)
	}
	b.want(SampleStats{Answered: 10, Refused: 190})
	b.Take(b.ask(peer, 1), 99*time.Millisecond)
	b.want(SampleStats{Answered: 10, Refused: 191})
	b.Take(b.ask(peer, 1), 100*time.Millisecond)
	b.Take(b.ask(peer, 1), 100*time.Millisecond)
	b.want(SampleStats{Answered: 11, Refused: 192})
	if len(b.taken()) != 11 {
		t.Error("what is counted as answered is not sent")
	}

	b = newBench(t, encap.CarrierIPIP, false, bucket.Bucket{}) // the usual bound
	for range AnswerRate {
		b.Take(b.ask(peer, 1), time.Second)
	}
	b.want(SampleStats{Answered: AnswerRate / 10, Refused: AnswerRate - AnswerRate/10})
}

// A path that has gone since the choice is not probed. The next choice has others probed.
func TestSampler_pathGone(t *testing.T) {
	b := newBench(t, encap.CarrierIPIP, true, bucket.Bucket{})
	b.choose(peer, 1)
	whole := b.top
	for path := range 4 {
		b.top = b.top.WithoutNode(whole.Paths(0, 15).Bounce(path))
	}
	b.Pump(1)
	if got := b.taken(); len(got) > 0 {
		t.Errorf("sent is %+v", got)
	}
	b.want(SampleStats{Pathless: 2})
	b.top = whole.WithoutNode(whole.Paths(0, 15).Bounce(2))
	for now := time.Duration(1); now < 30*time.Second; now += 50 * time.Millisecond {
		b.choose(peer, now)
		b.Pump(now)
		for _, p := range b.taken() {
			if p.path == 2 || p.path != int(p.Sample.Path) {
				t.Fatalf("sent is %+v", p)
			}
		}
	}
	if n := b.Stats(); n.Pathless != 2 || n.Sent < 20 || n.Sent+2 != n.Table.Probes {
		t.Errorf("%+v", n)
	}
}

// Another fabric begins with another table: the number of a rack is another's there. What
// is on its way from the old one is not believed.
func TestSampler_anotherFabric(t *testing.T) {
	b := newBench(t, encap.CarrierIPIP, true, bucket.Bucket{})
	b.choose(peer, 1)
	b.Pump(1)
	old := b.taken()
	b.top = fabricOf(t, "fat-tree:k=8")
	b.useTable()
	if _, learned := b.Take(b.answered(old[0], nil), 1000); learned || b.Stats().Table.Unknown != 1 {
		t.Errorf("an answer of another fabric is believed: %+v", b.Stats().Table)
	}
	b.choose(peer, 2000)
	b.Pump(2000)
	p := b.taken()
	if len(p) != 2 {
		t.Fatalf("sent is %+v", p)
	}
	edge, learned := b.Take(b.answered(p[0], nil), 3000)
	if rack, _ := b.top.RackAt(peer); !learned || edge != rack || b.table.Destinations()[0].Destination != uint32(rack) {
		t.Errorf("learned of %d, %v", edge, learned)
	}
	b.Take(b.ask(peer, 15), 4000) // k=4 has no such path
	if got := b.taken(); len(got) != 1 || got[0].path != 15 {
		t.Errorf("answered is %+v", got)
	}
}

// What Write does not take is counted as that and nothing else: a probe is not sent.
func TestSampler_writeFails(t *testing.T) {
	b := newBench(t, encap.CarrierIPIP, true, bucket.Bucket{})
	b.fails = true
	b.choose(peer, 1)
	b.Pump(1)
	b.want(SampleStats{Unsent: 2})
	b.Take(b.ask(peer, 1), 2)
	b.want(SampleStats{Unsent: 3, Answered: 1})
	b.fails = false
	b.Take(b.ask(peer, 1), 3)
	b.want(SampleStats{Unsent: 3, Answered: 2})
}

// A peer that was left alone since it was silent is asked as soon as it samples itself,
// and only if it is answered.
func TestSampler_hears(t *testing.T) {
	b := newBench(t, encap.CarrierIPIP, true, bucket.New(1, time.Second))
	now := time.Duration(1)
	for b.choose(peer, now); b.Stats().Table.Rounds == 0 || b.Next() < now+10*time.Second; b.choose(peer, now) {
		now += 100 * time.Millisecond
		b.Pump(now)
		if now > time.Hour {
			t.Fatalf("a silent peer is not left alone: %+v", b.Stats())
		}
	}
	b.taken()
	b.Take(b.ask(peer, 77), now)
	if b.Due(now) {
		t.Error("a question by no path is heard")
	}
	b.Take(b.ask(peer, 1), now)
	if !b.Due(now) || len(b.taken()) != 1 {
		t.Fatalf("the next is due at %v, now is %v", b.Next(), now)
	}
	b.Pump(now)
	if got := b.taken(); len(got) != 2 || got[0].To != peer {
		t.Errorf("sent is %+v", got)
	}
}

// Neither probes nor answers cost an allocation.
func TestSampler_allocatesNothing(t *testing.T) {
	b := newBench(t, encap.CarrierIPIP, true, bucket.New(1e9, time.Second))
	b.config.Write = func([]byte) error { return nil }
	now := time.Duration(1)
	o, _ := b.outer(peer, 1)
	b.config.Encapsulate = func(buf []byte, _ netip.Addr, _ int, id uint16) ([]byte, bool) {
		packet, err := o.Encapsulate(buf, id)
		return packet, err == nil
	}
	ask := b.ask(peer, 1)
	if n := testing.AllocsPerRun(1000, func() {
		now = max(now+1, min(b.Next(), now+time.Second))
		b.choose(peer, now)
		b.Pump(now)
		b.Take(ask, now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := b.Stats(); n.Sent == 0 || n.Answered != 1001 {
		t.Errorf("%+v", n)
	}
}
