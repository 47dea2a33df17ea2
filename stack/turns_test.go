package stack

import (
	"bytes"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

const (
	byHandAckDelay    = byHandRTO / 4 // a quarter of the least timeout
	byHandAnswerDelay = time.Millisecond
)

// request hands netstack a segment with payload, and waits until it is processed.
func (h *byHand) request(size int) {
	h.receive(header.TCPFlagAck|header.TCPFlagPsh, nil, make([]byte, size)...)
	h.seq += uint32(size)
	h.net.Pause()
	h.net.Resume()
}

// answer has the application read everything and send a few bytes, whose acknowledgement it
// returns.
func (h *byHand) answer() uint32 {
	h.t.Helper()
	var b bytes.Buffer
	_, err := h.ep.Read(&b, tcpip.ReadOptions{})
	h.must(err)
	n, err := h.ep.Write(bytes.NewReader(make([]byte, 64)), tcpip.WriteOptions{})
	h.must(err)
	s := h.sent()
	if len(s.Payload()) != int(n) {
		h.t.Fatalf("an answer of %d bytes, want %d", len(s.Payload()), n)
	}
	h.ack += uint32(n)
	return s.AckNumber()
}

// acknowledges fails unless one packet was sent, without payload, and acknowledges all.
func (h *byHand) acknowledges(when string) {
	h.t.Helper()
	if n := h.link.NumQueued(); n != 1 {
		h.t.Fatalf("%s: %d packets were sent, want an acknowledgement", when, n)
	}
	if s := h.sent(); s.AckNumber() != h.seq || len(s.Payload()) > 0 {
		h.t.Errorf("%s: %d bytes that acknowledge %d, want %d", when, len(s.Payload()), s.AckNumber(), h.seq)
	}
}

// takeTurns answers three requests, each acknowledged at once.
func (h *byHand) takeTurns() {
	h.t.Helper()
	for range 3 {
		h.request(64)
		h.acknowledges("a request of one who takes turns not yet")
		h.answer()
	}
}

// Where the application answers each request at once, the answer acknowledges it.
func TestTurns_answerAcknowledges(t *testing.T) {
	h := connectByHand(t)
	h.takeTurns()
	for range 5 {
		h.request(64)
		if n := h.link.NumQueued(); n != 0 {
			t.Fatalf("%d packets were sent before the answer", n)
		}
		h.clock.Advance(byHandAnswerDelay / 2)
		if ack := h.answer(); ack != h.seq {
			t.Errorf("the answer acknowledges %d, want %d", ack, h.seq)
		}
	}
	h.clock.Advance(byHandAckDelay)
	if n := h.link.NumQueued(); n != 0 {
		t.Errorf("%d packets were sent of what the answers acknowledge", n)
	}
}

// A request without an answer is acknowledged in time, and the next ones at once.
func TestTurns_endWithoutAnAnswer(t *testing.T) {
	h := connectByHand(t)
	h.takeTurns()
	h.request(64)
	h.clock.Advance(byHandAnswerDelay - time.Microsecond)
	if n := h.link.NumQueued(); n != 0 {
		t.Fatalf("%d packets were sent before the time", n)
	}
	h.clock.Advance(time.Microsecond)
	h.acknowledges("a request without an answer")
	h.request(64)
	h.acknowledges("the next one")
}

// A peer that waits for the acknowledgement of the first part of a request gets it at once,
// each time. So does one that sends a second segment meanwhile, or one out of order.
func TestTurns_onlyOfSingleSegments(t *testing.T) {
	for _, c := range []struct {
		name  string
		turns bool
		then  func(h *byHand)
	}{
		{"requests in two parts", false, func(h *byHand) {
			for range 10 {
				h.request(64)
				h.acknowledges("the first part")
				h.request(64)
				h.acknowledges("the second part")
				h.answer()
			}
		}},
		{"late answers", false, func(h *byHand) {
			for range 10 {
				h.request(64)
				h.acknowledges("a request that is answered late")
				h.clock.Advance(byHandAnswerDelay)
				h.answer()
			}
		}},
		{"a second segment", true, func(h *byHand) {
			h.request(64)
			h.request(64)
			h.acknowledges("two")
		}},
		{"a hole", true, func(h *byHand) {
			h.seq += 64
			h.request(64)
			h.seq -= 128
			h.acknowledges("one out of order")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := connectByHand(t)
			if c.turns {
				h.takeTurns()
			}
			c.then(h)
		})
	}
}
