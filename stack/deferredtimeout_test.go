package stack

import (
	"fmt"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/third_party/netstack/tcp"
)

// A timer that expires while an acknowledgement waits for the processor is no timeout: what
// it has run for has arrived. If what waits acknowledges nothing, the timeout comes then.
func TestTimeout_waitsForWhatIsQueued(t *testing.T) {
	for _, c := range []struct {
		name     string
		acked    int // of the bytes sent, in 3
		queued   bool
		timeouts uint64
	}{
		{"all is acknowledged", 3, true, 0},
		{"a part is acknowledged, and starts the timer anew", 1, true, 0},
		{"a duplicate acknowledgement", 0, true, 1},
		{"nothing waits", 0, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := connectByHand(t)
			n := h.send()
			h.net.Pause()
			if c.queued {
				h.ack += uint32(n * c.acked / 3)
				h.receive(header.TCPFlagAck, nil)
			}
			h.clock.Advance(byHandRTO + time.Millisecond)
			if got := h.net.Stats().TCP.Timeouts.Value(); c.queued && got != 0 {
				t.Errorf("%d timeouts before the acknowledgement was processed", got)
			}
			h.net.Resume()
			h.net.Pause() // the processor has nothing left to do
			h.net.Resume()
			if got := h.net.Stats().TCP.Timeouts.Value(); got != c.timeouts {
				t.Errorf("%d timeouts, want %d", got, c.timeouts)
			}
			if got := h.net.Stats().TCP.Retransmits.Value(); got != c.timeouts {
				t.Errorf("%d segments sent again, want %d", got, c.timeouts)
			}
			// Whatever came before, a timer runs for what is not acknowledged yet.
			before := h.net.Stats().TCP.Timeouts.Value()
			h.clock.Advance(time.Second)
			if after := h.net.Stats().TCP.Timeouts.Value(); (after > before) != (c.acked < 3) {
				t.Errorf("%d timeouts in the next second", after-before)
			}
		})
	}
}

// What waits may be more than the processor takes at a time. The acknowledgement at its end
// counts, too.
func TestTimeout_waitsForAllThatIsQueued(t *testing.T) {
	h := connectByHand(t)
	old := h.ack
	n := h.send()
	h.net.Pause()
	for range 250 { // netstack takes 100 at a time
		h.ack = old - 1 // no duplicate: it says nothing new
		h.receive(header.TCPFlagAck, nil)
	}
	h.ack = old + uint32(n)
	h.receive(header.TCPFlagAck, nil)
	h.clock.Advance(byHandRTO)
	h.net.Resume()
	if n := h.timeouts(); n != 0 {
		t.Errorf("%d timeouts before the acknowledgement was processed", n)
	}
	h.clock.Advance(time.Second)
	if n := h.timeouts(); n != 0 {
		t.Errorf("%d timeouts of what is acknowledged", n)
	}
}

// A timeout that was put off ends a connection as any other does: without a reset, and with
// the cause that ICMP gave.
func TestTimeout_endsTheConnectionAlike(t *testing.T) {
	for _, queued := range []bool{false, true} {
		t.Run(fmt.Sprintf("queued=%v", queued), func(t *testing.T) {
			h := connectByHand(t)
			h.must(h.ep.SetSockOpt(new(tcpip.TCPUserTimeoutOption(30 * time.Millisecond))))
			old := h.ack
			h.send()
			h.clock.Advance(byHandRTO) // sent again, and the timer runs for the last 10 ms
			for h.link.NumQueued() > 0 {
				h.sent()
			}
			h.unreachable()
			h.net.Pause()
			if queued {
				h.ack = old - 1
				h.receive(header.TCPFlagAck, nil)
			}
			h.clock.Advance(byHandRTO)
			h.net.Resume()
			if n := h.timeouts(); n != 2 || tcp.EndpointState(h.ep.State()) != tcp.StateError {
				t.Fatalf("%d timeouts, state %v", n, tcp.EndpointState(h.ep.State()))
			}
			if n := h.link.NumQueued(); n != 0 {
				t.Errorf("%d packets were sent at the end", n)
			}
			if err, ok := h.ep.LastError().(*tcpip.ErrHostUnreachable); !ok {
				t.Errorf("ended by %v, want the ICMP error", err)
			}
		})
	}
}

// expireLate has the retransmit timer of what was sent run late, and timers be on time again.
func (h *byHand) expireLate(late time.Duration) {
	h.t.Helper()
	h.clock.by.Store(int64(late))
	h.send()
	h.clock.Advance(byHandRTO)
	h.clock.by.Store(0)
	h.clock.Advance(late)
	if n := h.timeouts(); late > 0 && n != 0 {
		h.t.Fatalf("%d timeouts at once when the timer came %v late", n, late)
	}
}

// A timer that was late runs on as long, at most the least timeout. Then the loss counts, and
// the next timeout of the same connection comes at RTO.
func TestTimeout_waitsAsLongAsItsTimerWasLate(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ late, wait time.Duration }{
		{0, 0}, {1 * ms, 1 * ms}, {10 * ms, 10 * ms}, {500 * ms, byHandRTO},
	} {
		t.Run(c.late.String(), func(t *testing.T) {
			h := connectByHand(t)
			h.expireLate(c.late)
			for n, wait := range []time.Duration{c.wait, 2 * byHandRTO, 4 * byHandRTO} {
				if wait > 0 {
					h.clock.Advance(wait - 1)
					if got := h.timeouts(); got != uint64(n) {
						t.Fatalf("%d timeouts just before number %d is due", got, n+1)
					}
					h.clock.Advance(1)
				}
				if got := h.timeouts(); got != uint64(n+1) {
					t.Fatalf("%d timeouts when number %d is due", got, n+1)
				}
			}
		})
	}
}

// A timer that is late again after it ran on counts: it runs on once only.
func TestTimeout_runsOnOnce(t *testing.T) {
	const late = 15 * time.Millisecond
	h := connectByHand(t)
	h.clock.by.Store(int64(late))
	h.send()
	h.clock.Advance(byHandRTO + 3*late - 1)
	if n := h.timeouts(); n != 0 {
		t.Errorf("%d timeouts before the timer, late twice, has run on", n)
	}
	h.clock.Advance(1)
	if n := h.timeouts(); n != 1 {
		t.Errorf("%d timeouts, want 1", n)
	}
}

// What has come while the process was late is read before it counts as lost.
func TestTimeout_acknowledgedLate(t *testing.T) {
	const late = 40 * time.Millisecond
	h := connectByHand(t)
	before := h.ack
	h.expireLate(late)
	h.ack = before + 3*1448
	h.receive(header.TCPFlagAck, nil)
	h.clock.Advance(time.Second)
	if n := h.timeouts(); n != 0 {
		t.Errorf("%d timeouts, although the acknowledgement was there", n)
	}
}
