package aqm

import (
	"time"

	"weft/internal/qcn"
)

// QCNConfig is quantized congestion notification between two bumps (thesis §5.3.3, §5.5.3):
// a congestion point in front of a port, and upstream of it a reaction point, which slows the
// flows that it is told of. Neither holds packets, so the reaction point drops what exceeds a
// flow's rate.
type QCNConfig struct {
	Queue    VirtualQueue   // of the congestion point
	Point    qcn.Parameters // of the congestion point
	Reaction qcn.Config     // of a flow
	LineMbit float64        // what a flow sends at before the first message
	Delay    time.Duration  // of a message
	// Burst is how many bytes of a flow that is slowed may pass at once.
	Burst int
}

// QCN is both of its points. See Congestion and Reaction.
type QCN struct {
	c     QCNConfig
	queue VirtualQueue
	point qcn.Congestion
	sent  []message // on their way, in order
	flows map[uint64]*slowed

	most float64 // bytes of the virtual queue

	passed     VirtualQueue // what the reaction point lets pass, as the same port would hold it
	mostPassed float64
}

// maxMessages bounds those on their way.
const maxMessages = 1024

type message struct {
	at    time.Duration
	flow  uint64
	level int
}

// slowed is a flow at the reaction point: a token bucket at the rate of its Reaction.
type slowed struct {
	reaction *qcn.Reaction
	tokens   float64
	last     time.Duration
}

// NewQCN returns both points before the first packet. An error names the field that is wrong.
func NewQCN(c QCNConfig) (*QCN, error) {
	if err := c.Queue.Check(); err != nil {
		return nil, err
	}
	if _, err := qcn.NewReaction(c.Reaction, c.Reaction.Limit, 0); err != nil {
		return nil, err
	}
	return &QCN{c: c, queue: c.Queue, passed: c.Queue, point: qcn.NewCongestion(c.Point), flows: make(map[uint64]*slowed)}, nil
}

// Congestion is the Discipline of the port that is watched.
func (q *QCN) Congestion() Discipline { return (*congestionPoint)(q) }

// Reaction is the Discipline of the port upstream.
func (q *QCN) Reaction() Discipline { return (*reactionPoint)(q) }

// Most is the most bytes that the congestion point's virtual queue has held.
func (q *QCN) Most() float64 { return q.most }

// MostPassed is the most bytes that a virtual queue as the congestion point's would have held
// of what the reaction point let pass.
func (q *QCN) MostPassed() float64 { return q.mostPassed }

// Passed is how many bytes a virtual queue as the congestion point's would hold at a time of
// what the reaction point let pass. Time does not go back.
func (q *QCN) Passed(now time.Duration) float64 { return q.passed.Length(now) }

// Sampled is how many packets the congestion point has told of.
func (q *QCN) Sampled() uint64 { return q.point.Sampled }

// Forget begins Most and MostPassed anew.
func (q *QCN) Forget() { q.most, q.mostPassed = 0, 0 }

type congestionPoint QCN

// Arrive samples packets of a queue that is too long. It drops none: what does not fit, the
// port behind drops.
func (q *congestionPoint) Arrive(a Arrival) Verdict {
	found, _ := q.queue.Put(a.Now, a.Bytes)
	q.most = max(q.most, q.queue.length)
	if level := q.point.Arrive(uint64(found)); level > 0 && q.point.Sample(level, 1) {
		if len(q.sent) == maxMessages { // nobody hears them
			q.sent = append(q.sent[:0], q.sent[1:]...)
		}
		q.sent = append(q.sent, message{at: a.Now + q.c.Delay, flow: a.Flow, level: int(level)})
	}
	return Pass
}

type reactionPoint QCN

// Arrive drops what exceeds a flow's rate.
func (q *reactionPoint) Arrive(a Arrival) Verdict {
	v := q.choose(a)
	if v == Pass {
		q.passed.Put(a.Now, a.Bytes)
		q.mostPassed = max(q.mostPassed, q.passed.length)
	}
	return v
}

func (q *reactionPoint) choose(a Arrival) Verdict {
	q.hear(a.Now)
	f := q.flows[a.Flow]
	if f == nil {
		return Pass
	}
	f.tokens = min(f.tokens+(a.Now-f.last).Seconds()*f.reaction.Rate(), float64(q.c.Burst))
	f.last = a.Now
	f.reaction.Tick(a.Now)
	if f.tokens < float64(a.Bytes) {
		return Drop
	}
	f.tokens -= float64(a.Bytes)
	if f.reaction.Sent(uint64(a.Bytes)); f.reaction.Done() {
		delete(q.flows, a.Flow)
	}
	return Pass
}

// hear takes the messages that have arrived.
func (q *reactionPoint) hear(now time.Duration) {
	n := 0
	for n < len(q.sent) && q.sent[n].at <= now {
		m := q.sent[n]
		n++
		f := q.flows[m.flow]
		if f == nil {
			r, err := qcn.NewReaction(q.c.Reaction, q.c.LineMbit*1e6/8, m.at)
			if err != nil {
				panic(err) // NewQCN has seen that there is none
			}
			f = &slowed{reaction: r, last: m.at}
			q.flows[m.flow] = f
		}
		f.reaction.Feedback(m.level, m.at)
	}
	q.sent = q.sent[n:]
}
