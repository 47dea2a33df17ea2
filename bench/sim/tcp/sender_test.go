package tcp

import (
	"strings"
	"testing"
	"time"
	"unsafe"
)

func TestConfig_namesWhatIsWrong(t *testing.T) {
	for field, c := range map[string]Config{
		"MSS":           {MSS: 10},
		"HeaderBytes":   {HeaderBytes: -1},
		"WindowBytes":   {WindowBytes: 1459},
		"InitialWindow": {InitialWindow: -1},
		"DupThresh":     {DupThresh: -1},
		"RTOMin":        {RTOMin: -1},
		"RTOInitial":    {RTOMin: time.Second, RTOInitial: time.Millisecond},
		"DCTCP":         {DCTCP: true, ECN: true},
	} {
		if _, err := c.WithDefaults(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: %v, want an error that names %s", c, err, field)
		}
	}
	got, err := Config{}.WithDefaults()
	want := Config{MSS: 1460, HeaderBytes: 40, WindowBytes: 256 << 10, InitialWindow: 10,
		RTOMin: 10 * time.Millisecond, RTOInitial: 20 * time.Millisecond, DupThresh: 3}
	if err != nil || got != want {
		t.Errorf("defaults %+v, %v, want %+v", got, err, want)
	}
	for _, c := range []Config{{RTOMin: time.Minute}, {MSS: 9000, WindowBytes: 4 << 20}, {MSS: 64, WindowBytes: 64}} {
		if _, err := c.WithDefaults(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestSize: a fabric has tens of thousands of each.
func TestSize(t *testing.T) {
	if n := unsafe.Sizeof(Sender{}); n > 256 {
		t.Errorf("a Sender is %d bytes", n)
	}
	if n := unsafe.Sizeof(Receiver{}); n > 96 {
		t.Errorf("a Receiver is %d bytes", n)
	}
}

// TestSender_segmentsCoverTheFlow: whole ones, and the last as long as is left.
func TestSender_segmentsCoverTheFlow(t *testing.T) {
	c, _ := Config{MSS: 100, InitialWindow: 100}.WithDefaults()
	for _, total := range []int64{1, 99, 100, 101, 1234} {
		var s Sender
		s.Start(&c, total)
		var end int64
		for seg, ok := s.Next(0); ok; seg, ok = s.Next(0) {
			if left := total - end; seg.Seq != end || seg.Retransmit || int64(seg.Len) != min(100, left) {
				t.Errorf("of %d: %+v after %d", total, seg, end)
			}
			end += int64(seg.Len)
		}
		if end != total {
			t.Errorf("sent %d of %d", end, total)
		}
		s.Ack(Ack{Cum: total, Echo: -1}, 1)
		if _, ok := s.Next(1); ok || !s.Done() {
			t.Errorf("%d acknowledged, done: %v, more to send: %v", total, s.Done(), ok)
		}
	}
}

// TestSender_ignoresWhatIsOld: acknowledgements overtake each other.
func TestSender_ignoresWhatIsOld(t *testing.T) {
	c, _ := Config{}.WithDefaults()
	var s Sender
	s.Start(&c, 0)
	drain(&s, 0)
	s.Ack(Ack{Cum: 5 * 1460, Echo: 0}, time.Millisecond)
	before := s
	s.Ack(Ack{Cum: 2 * 1460, Sacked: 3 * 1460, SackedLen: 1460, Echo: -1}, 2*time.Millisecond)
	if before.board.una != s.board.una || before.board.sacked != s.board.sacked || before.cwnd != s.cwnd ||
		before.deadline != s.deadline || s.dupAcks != 0 {
		t.Errorf("an old acknowledgement changed %+v to %+v", before, s)
	}
}

// TestSender_countsDuplicatesOfWhatIsUnderWay only.
func TestSender_countsDuplicatesOfWhatIsUnderWay(t *testing.T) {
	c, _ := Config{}.WithDefaults()
	var s Sender
	s.Start(&c, 1460)
	drain(&s, 0)
	s.Ack(Ack{Cum: 0, Echo: -1}, 1)
	s.Ack(Ack{Cum: 1460, Echo: -1}, 2)
	s.Ack(Ack{Cum: 1460, Echo: -1}, 3)
	if _, _, n := s.Stats(); n != 1 {
		t.Errorf("%d duplicates, want 1", n)
	}
}

// TestReceiver_holdsNoMoreThanItsWindow.
func TestReceiver_holdsNoMoreThanItsWindow(t *testing.T) {
	c, _ := Config{MSS: 100, WindowBytes: 1050}.WithDefaults()
	var r Receiver
	r.Start(&c, 0)
	for _, seq := range []int64{900, 1000, 1_000_000, -100} {
		want := Ack{Echo: -1}
		if seq == 900 {
			want.Sacked, want.SackedLen = 900, 100
		}
		if a, n := r.Data(seq, 100, false); a != want || n != 0 {
			t.Errorf("%d: %+v, %d delivered, want %+v", seq, a, n, want)
		}
	}
}

// drain has all sent that may be.
func drain(s *Sender, now time.Duration) {
	for ok := true; ok; _, ok = s.Next(now) {
	}
}

// turn is a round of a connection with a loss or without: 40 segments each way.
func turn(s *Sender, r *Receiver, now time.Duration, lossy bool) time.Duration {
	for n := 0; n < 40; now += time.Microsecond {
		seg, ok := s.Next(now)
		if !ok {
			now += time.Millisecond
			s.Timeout(now)
			continue
		}
		n++
		if lossy && n%9 == 0 {
			continue
		}
		a, _ := r.Data(seg.Seq, seg.Len, n%7 == 0)
		if a.Echo = now; seg.Retransmit {
			a.Echo = -1
		}
		s.Ack(a, now+50*time.Microsecond)
	}
	return now
}

func TestConnection_allocatesNothing(t *testing.T) {
	for _, window := range []int{64 << 10, 256 << 10, 4 << 20} {
		for _, lossy := range []bool{false, true} {
			c, _ := Config{WindowBytes: window, DCTCP: true, RTOMin: time.Microsecond}.WithDefaults()
			var s Sender
			var r Receiver
			s.Start(&c, 0)
			r.Start(&c, 0)
			var now time.Duration
			n := testing.AllocsPerRun(100, func() {
				now = turn(&s, &r, now, lossy)
				s.Start(&c, 1<<20) // a flow ends, the next uses its state
				r.Start(&c, 1<<20)
				now = turn(&s, &r, now, lossy)
			})
			if n != 0 {
				t.Errorf("window %d, lossy %v: %v allocations", window, lossy, n)
			}
		}
	}
}

// BenchmarkConnection is of a segment: Next, Data, Ack and Deadline.
func BenchmarkConnection(b *testing.B) {
	for _, c := range []struct {
		name    string
		dctcp   bool
		reorder int
	}{{"plain", false, 1}, {"dctcp", true, 1}, {"reordered by 2", false, 2}, {"reordered by 8", false, 8}} {
		b.Run(c.name, func(b *testing.B) {
			config, _ := Config{WindowBytes: 64 << 10, DCTCP: c.dctcp, DupThresh: 16}.WithDefaults()
			var s Sender
			var r Receiver
			s.Start(&config, 0)
			r.Start(&config, 0)
			var now time.Duration
			var way [256]Segment // under way, from first to last
			var first, last uint8
			b.ReportAllocs()
			for n := 0; n < b.N; {
				for seg, ok := s.Next(now); ok; seg, ok = s.Next(now) {
					way[last] = seg
					last++
				}
				now += time.Microsecond
				for i := min(uint8(c.reorder), last-first); i > 0; i-- { // the other way round
					seg := &way[first+i-1]
					a, _ := r.Data(seg.Seq, seg.Len, false)
					a.Echo = now - 50*time.Microsecond
					s.Ack(a, now)
					s.Deadline()
					n++
				}
				first += min(uint8(c.reorder), last-first)
			}
		})
	}
}
