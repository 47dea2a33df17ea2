package stack

import (
	"bytes"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/third_party/netstack/tcp"
)

// waiting returns the bytes that the application could read.
func (h *byHand) waiting() int {
	h.t.Helper()
	n, err := h.ep.GetSockOptInt(tcpip.ReceiveQueueSizeOption)
	h.must(err)
	return n
}

// come hands over a segment that the processors, which stand still, do not process.
func (h *byHand) come(flags header.TCPFlags, size int) {
	h.receive(flags, nil, make([]byte, size)...)
	h.seq += uint32(size)
}

// A request is processed by who delivers it; what is not one waits for a processor.
func TestInline_processesRequests(t *testing.T) {
	for _, c := range []struct {
		name   string
		come   func(h *byHand)
		inline int // bytes that Process has made readable
		bytes  int // and the processors
	}{
		{"a request", func(h *byHand) { h.come(header.TCPFlagAck|header.TCPFlagPsh, 64) }, 64, 64},
		{"an acknowledgement", func(h *byHand) { h.come(header.TCPFlagAck, 0) }, 0, 0},
		{"a long one", func(h *byHand) { h.come(header.TCPFlagAck, 5000) }, 0, 5000},
		{"with the end", func(h *byHand) { h.come(header.TCPFlagAck|header.TCPFlagFin, 64) }, 64, 64},
		{"behind others", func(h *byHand) {
			h.come(header.TCPFlagAck, 5000)
			h.come(header.TCPFlagAck|header.TCPFlagPsh, 64)
		}, 0, 5064},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := connectByHand(t)
			in := tcp.InlineOf(h.net)
			h.net.Pause()
			in.Collect()
			c.come(h)
			if n := h.waiting(); n != 0 {
				t.Errorf("%d bytes before Process", n)
			}
			in.Process()
			if n := h.waiting(); n != c.inline {
				t.Errorf("%d bytes after Process, want %d", n, c.inline)
			}
			h.net.Resume()
			h.net.Pause() // the processors have nothing left to do
			h.net.Resume()
			if n := h.waiting(); n != c.bytes {
				t.Errorf("%d bytes in the end, want %d", n, c.bytes)
			}
		})
	}
}

// A connection that its application uses meanwhile is processed when that is over, and one
// that nobody collects by a processor.
func TestInline_leavesTheRest(t *testing.T) {
	h := connectByHand(t)
	in, ep := tcp.InlineOf(h.net), h.ep.(*tcp.Endpoint)
	in.Collect()
	h.come(header.TCPFlagAck|header.TCPFlagPsh, 64)
	ep.LockUser()
	in.Process()
	ep.UnlockUser()
	h.net.Pause()
	h.net.Resume()
	if n := h.waiting(); n != 64 {
		t.Errorf("%d bytes of a connection that was in use, want 64", n)
	}
	h.come(header.TCPFlagAck|header.TCPFlagPsh, 64)
	h.net.Pause()
	h.net.Resume()
	if n := h.waiting(); n != 128 {
		t.Errorf("%d bytes after Process, want 128", n)
	}
}

// So is one whose lock somebody holds who is not its application. One with data to send is not
// processed inline: its acknowledgement lets it send more than a request's answer.
func TestInline_leavesWhatIsLockedOrSends(t *testing.T) {
	h := connectByHand(t)
	in, ep := tcp.InlineOf(h.net), h.ep.(*tcp.Endpoint)
	in.Collect()
	h.come(header.TCPFlagAck|header.TCPFlagPsh, 64)
	ep.StopWork()
	in.Process()
	ep.ResumeWork()
	h.net.Pause()
	h.net.Resume()
	if n := h.waiting(); n != 64 {
		t.Errorf("%d bytes of a connection that was locked, want 64", n)
	}

	const window = 10 // segments, at the beginning
	_, err := h.ep.Write(bytes.NewReader(make([]byte, 2*window*1448)), tcpip.WriteOptions{})
	h.must(err)
	for h.link.NumQueued() > 0 {
		h.ack += uint32(len(h.sent().Payload()))
	}
	h.net.Pause()
	in.Collect()
	h.come(header.TCPFlagAck|header.TCPFlagPsh, 64)
	in.Process()
	if n := h.link.NumQueued(); n != 0 || h.waiting() != 64 {
		t.Errorf("%d packets were sent by who delivers, %d bytes waiting", n, h.waiting())
	}
	h.net.Resume()
	h.net.Pause()
	h.net.Resume()
	if n := h.link.NumQueued(); n < window || h.waiting() != 128 {
		t.Errorf("%d packets were sent in the end, %d bytes waiting", n, h.waiting())
	}
}
