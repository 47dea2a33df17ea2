package tcp

import (
	"fmt"
	"testing"
	"time"

	"weft/internal/timerq"
)

// network is a sender, a receiver and what lies between: a bottleneck's queue, a
// delay, and whatever befalls packets. It checks at every step what always holds.
type network struct {
	config Config
	total  int64
	delay  time.Duration // one way
	packet time.Duration // what a full segment takes at the bottleneck; 0: none
	room   int           // segments of queue; 0: no limit
	markAt int           // segments of queue beyond which packets are marked; 0: never

	// data and acks say what becomes of the n-th packet each way: how late each of
	// its copies is. Nil: one, in time.
	data, acks func(n int, seg Segment) []time.Duration
	// stop ends the run early.
	stop func() bool
	// onAck and onSend are told of what has happened.
	onAck  func(a Ack)
	onSend func(seg Segment)

	s   Sender
	r   Receiver
	now time.Duration

	events      timerq.Queue[event]
	timer       time.Duration // the next one's event; 0: none
	nData, nAck int
	freeAt      time.Duration // of the bottleneck
	idle        time.Duration // how long it had nothing to do after the first packet
	maxQueue    int
	dropped     int

	oracle    map[int64]int32 // what has arrived: length by start
	prefix    int64           // to where it has arrived without a hole
	delivered int64
	sent      int64 // the end of what has been sent
}

type event struct {
	kind uint8 // packet, acknowledgement, timer
	seg  Segment
	ack  Ack
	ce   bool
	echo time.Duration
}

// run drives the transfer to its end. An error says what did not hold.
func (n *network) run(limit time.Duration) error {
	c, err := n.config.WithDefaults()
	if err != nil {
		return err
	}
	n.config = c
	n.oracle = map[int64]int32{}
	n.s.Start(&n.config, n.total)
	n.r.Start(&n.config, n.total)
	if err := n.send(); err != nil {
		return err
	}
	for n.events.Len() > 0 && !(n.stop != nil && n.stop()) {
		n.now = n.events.Next()
		e := n.events.Pop()
		if n.now > limit {
			return fmt.Errorf("not done after %v: %d of %d acknowledged", limit, n.s.board.una, n.s.all)
		}
		switch e.kind {
		case 0:
			err = n.arrive(e)
		case 1:
			n.s.Ack(e.ack, n.now)
			if n.onAck != nil {
				n.onAck(e.ack)
			}
		case 2:
			if n.timer == n.now {
				n.timer = 0
			}
			n.s.Timeout(n.now)
		}
		if err == nil {
			err = n.send()
		}
		if err != nil {
			return fmt.Errorf("at %v: %w", n.now, err)
		}
	}
	if n.stop == nil && !n.s.Done() {
		return fmt.Errorf("nothing under way, %d of %d acknowledged", n.s.board.una, n.s.all)
	}
	if n.s.Done() && (!n.r.Done() || n.delivered != n.total || n.r.held != 0) {
		return fmt.Errorf("sender done, %d of %d delivered, %d held", n.delivered, n.total, n.r.held)
	}
	return nil
}

func (n *network) send() error {
	b, mss := &n.s.board, int64(n.config.MSS)
	for {
		fast := n.s.fast
		seg, ok := n.s.Next(n.now)
		if !ok {
			break
		}
		if pipe := b.pipe() * mss; seg.Len > 0 && (pipe > int64(n.s.cwnd) && !fast || b.next-b.una > int64(n.config.WindowBytes)/mss) {
			return fmt.Errorf("%d bytes under way, window %d, receiver's %d", pipe, n.s.cwnd, n.config.WindowBytes)
		}
		if !seg.Retransmit && seg.Seq != n.sent {
			return fmt.Errorf("sent %d as new after %d", seg.Seq, n.sent)
		}
		n.sent = max(n.sent, seg.Seq+int64(seg.Len))
		if n.onSend != nil {
			n.onSend(seg)
		}
		n.transmit(seg)
	}
	// An event that is too early asks again; one that is too late needs another.
	if at, ok := n.s.Deadline(); ok && (n.timer == 0 || at < n.timer) {
		n.timer = at
		n.events.Add(at, event{kind: 2})
	} else if !ok && !n.s.Done() {
		return fmt.Errorf("no timer runs")
	}
	return nil
}

// transmit takes a packet through the bottleneck.
func (n *network) transmit(seg Segment) {
	late := []time.Duration{0}
	if n.data != nil {
		late = n.data(n.nData, seg)
	}
	n.nData++
	leaves, marked := n.now, false
	if n.packet > 0 {
		queue := int((max(n.freeAt-n.now, 0) + n.packet - 1) / n.packet)
		if n.room > 0 && queue >= n.room {
			n.dropped++
			return
		}
		n.maxQueue = max(n.maxQueue, queue+1)
		marked = n.markAt > 0 && queue >= n.markAt
		if n.now > n.freeAt {
			n.idle += n.now - n.freeAt
		}
		n.freeAt = max(n.freeAt, n.now) + n.packet
		leaves = n.freeAt
	}
	echo := n.now
	if seg.Retransmit {
		echo = -1
	}
	for _, d := range late {
		n.events.Add(leaves+n.delay+d, event{seg: seg, ce: marked, echo: echo})
	}
}

// arrive compares the receiver with the oracle.
func (n *network) arrive(e event) error {
	a, delivered := n.r.Data(e.seg.Seq, e.seg.Len, e.ce)
	if e.seg.Len > 0 {
		n.oracle[e.seg.Seq] = e.seg.Len
	}
	n.delivered += delivered
	n.prefix = n.until(n.prefix)
	want := Ack{Echo: -1, ECE: e.ce, Cum: n.prefix}
	if e.seg.Seq > want.Cum {
		want.Sacked = e.seg.Seq
		for mss := int64(n.config.MSS); n.oracle[want.Sacked-mss] > 0; {
			want.Sacked -= mss
		}
		want.SackedLen = int32(n.until(e.seg.Seq) - want.Sacked)
	}
	if a != want || n.delivered != want.Cum {
		return fmt.Errorf("receiver says %+v, %d delivered, want %+v", a, n.delivered, want)
	}
	a.Echo = e.echo
	late := []time.Duration{0}
	if n.acks != nil {
		late = n.acks(n.nAck, e.seg)
	}
	n.nAck++
	for _, d := range late {
		n.events.Add(n.now+n.delay+d, event{kind: 1, ack: a})
	}
	return nil
}

// until returns where what has arrived from seq on without a hole ends.
func (n *network) until(seq int64) int64 {
	for n.oracle[seq] > 0 {
		seq += int64(n.oracle[seq])
	}
	return seq
}

// mustRun is run for those who expect no error.
func (n *network) mustRun(t *testing.T) {
	t.Helper()
	if err := n.run(time.Hour); err != nil {
		t.Fatal(err)
	}
}
