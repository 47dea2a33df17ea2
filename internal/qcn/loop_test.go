package qcn

import (
	"testing"
	"time"
)

// bottleneck is a port with a congestion point, in virtual time.
type bottleneck struct {
	Congestion
	rate, size float64 // bytes a second; bytes
	queue      float64
	at         time.Duration

	drops, sampled int
	most, mean     float64 // bytes of queue
	looked         int
}

// arrive returns the level of the feedback that the packet's sender gets, 0 if it gets none.
func (b *bottleneck) arrive(bytes float64, now time.Duration) (level uint32, kept bool) {
	b.queue = max(0, b.queue-(now-b.at).Seconds()*b.rate)
	b.at = now
	b.most = max(b.most, b.queue)
	b.mean += b.queue
	b.looked++
	if level = b.Arrive(uint64(b.queue)); level > 0 && !b.Sample(level, 1) {
		level = 0
	}
	if b.queue+bytes > b.size {
		b.drops++
		return level, false
	}
	b.queue += bytes
	return level, true
}

// source sends packets at a rate that it is slowed from.
type source struct {
	*Reactions
	flow Flow
	path []*bottleneck

	next time.Duration
	sent uint64 // bytes
	got  float64
}

const (
	line   = 1000 * mbit
	packet = 1500
	delay  = 100 * time.Microsecond // of a message
)

// run has sources send for a time, as fast as they may. Messages are ignored if deaf.
func run(sources []*source, until time.Duration, deaf bool) {
	type message struct {
		to    *source
		seq   uint32
		level int
		at    time.Duration
	}
	var messages []message
	for {
		s := sources[0]
		for _, other := range sources[1:] {
			if other.next < s.next {
				s = other
			}
		}
		now := s.next
		if now >= until {
			return
		}
		for len(messages) > 0 && messages[0].at <= now {
			m := messages[0]
			messages = messages[1:]
			m.to.Hear(Message{m.to.flow, m.seq, m.level})
			m.to.look(m.at)
		}
		s.look(now)
		s.sent += packet
		kept := true
		for _, b := range s.path {
			var level uint32
			if level, kept = b.arrive(packet, now); level > 0 && !deaf {
				messages = append(messages, message{s, uint32(s.sent) - 1, int(level), now + delay})
			}
			if !kept {
				break
			}
		}
		if kept {
			s.got += packet
		}
		rate, limited := s.Rate(s.flow)
		if !limited {
			rate = line
		}
		s.next = now + time.Duration(packet/rate*1e9)
	}
}

func (s *source) look(now time.Duration) {
	s.Look(now, func(Flow) (Connection, bool) {
		return Connection{Una: uint32(s.sent) - 10*packet, Next: uint32(s.sent), Sent: s.sent, Rate: line}, true
	})
}

func newSource(t *testing.T, port uint16, begin time.Duration, c Config, path ...*bottleneck) *source {
	t.Helper()
	r, err := NewReactions(c)
	if err != nil {
		t.Fatal(err)
	}
	return &source{Reactions: r, flow: flowTo(port), path: path, next: begin}
}

// Thesis Fig. 5.17: three flows that would each fill a link of 1 Gbit/s share it. The queue
// has 100 KB, of which 20 are sought. Without QCN it overflows all the time; with it the queue
// stays near the target, the link is used and the flows have fair shares. The log has the
// figures.
func TestQCN_threeFlowsThesis(t *testing.T) {
	c := Config{Floor: 10 * mbit, Limit: line, Increase: 1.5 * mbit, Timer: -1} // the thesis's model
	for _, deaf := range []bool{false, true} {
		port := &bottleneck{Congestion: NewCongestion(thesis), rate: line, size: 100_000}
		var sources []*source
		for i := range 3 {
			sources = append(sources, newSource(t, uint16(i), time.Duration(i)*500*time.Millisecond, c, port))
		}
		run(sources, 3*time.Second, deaf)
		*port = bottleneck{Congestion: port.Congestion, rate: port.rate, size: port.size, queue: port.queue, at: port.at}
		for _, s := range sources {
			s.got = 0
		}
		const measured = 5
		run(sources, (3+measured)*time.Second, deaf)
		total, least, most := 0.0, 1e18, 0.0
		for _, s := range sources {
			mb := s.got / measured / mbit
			total, least, most = total+mb, min(least, mb), max(most, mb)
		}
		mean := port.mean / float64(port.looked)
		t.Logf("deaf %v: %.0f Mbit/s, flows %.0f to %.0f; queue mean %.0f, at most %.0f bytes; %d drops", deaf, total, least, most, mean, port.most, port.drops)
		if deaf {
			if mean < 90_000 || port.drops < 100_000 {
				t.Errorf("without reaction points the queue does not overflow: mean %.0f, %d drops", mean, port.drops)
			}
			continue
		}
		if mean > 30_000 || port.drops > 0 || total < 900 || most > 3*least {
			t.Error("the queue is not kept near 20000 bytes, or the link is not used")
		}
	}
}

// Of two congestion points on a path the flow obeys the more congested one, wherever that is.
func TestQCN_severalBumps(t *testing.T) {
	c := Config{Floor: 10 * mbit, Limit: line, Increase: 1.5 * mbit, Timer: -1}
	for _, rates := range [][2]float64{{300, 100}, {100, 300}, {200, 200}} {
		var path []*bottleneck
		for _, r := range rates {
			path = append(path, &bottleneck{Congestion: NewCongestion(thesis), rate: r * mbit, size: 100_000})
		}
		s := newSource(t, 1, 0, c, path...)
		run([]*source{s}, 2*time.Second, false)
		s.got = 0
		run([]*source{s}, 6*time.Second, false)
		got := s.got / 4 / mbit
		t.Logf("%v Mbit/s: %.0f Mbit/s; %d and %d drops", rates, got, path[0].drops, path[1].drops)
		if want := min(rates[0], rates[1]); got < 0.85*want || got > want*1.01 {
			t.Errorf("%v Mbit/s: the flow has %.0f", rates, got)
		}
	}
}
