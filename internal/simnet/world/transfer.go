package world

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// transfer is what Flow and Trips share.
type transfer struct {
	From, To string
	// Start is when the connection was, or is to be, dialled; End is when the
	// last byte was read, 0 before.
	Start, End time.Duration

	world *World
	seed  int // where in the pattern this one's begins
}

func (t *transfer) String() string {
	return fmt.Sprintf("%s to %s, started at %v", t.From, t.To, t.Start)
}

// Time returns how long it took from the dial to the last byte, the handshake
// included; 0 if it has not ended.
func (t *transfer) Time() time.Duration {
	if t.End == 0 {
		return 0
	}
	return t.End - t.Start
}

// begin has the connection made at Start.
func (w *World) begin(t *transfer, client, server work) {
	t.world = w
	w.begun++
	t.seed = w.begun * 4099 % patternLength
	w.At(t.Start, func() {
		if err := w.connect(t.From, t.To, client, server); err != nil {
			t.fail(err)
		}
	})
}

// wait makes Run wait for t.
func (t *transfer) wait() { t.world.open = append(t.world.open, t) }

func (t *transfer) end() {
	w := t.world
	t.End = w.Now()
	if i := slices.Index(w.open, t); i >= 0 {
		w.open = slices.Delete(w.open, i, i+1)
	}
}

// waits reports whether err says to wait; if not, t has failed, unless it has
// ended before.
func (t *transfer) waits(err error) bool {
	if errors.Is(err, syscall.EAGAIN) {
		return true
	}
	if t.End == 0 {
		t.fail(err)
	}
	return false
}

func (t *transfer) fail(err error) { t.world.fail(fmt.Errorf("%v: %w", t, err)) }

// patternLength is prime, so that no multiple of a segment's length, but for
// very large ones, is one of the pattern's.
const patternLength = 65521

// newPattern returns random bytes of patternLength, twice, so that each piece
// of up to patternLength is contiguous.
func newPattern(seed uint64) []byte {
	rng := rand.NewPCG(seed, 0x7061747465726e)
	b := make([]byte, patternLength)
	for i := range b {
		b[i] = byte(rng.Uint64())
	}
	return append(b, b...)
}

// piece returns what the transfer's bytes are from offset on, up to n or as
// many as there are at once.
func (t *transfer) piece(offset, n int64) []byte {
	at := (int64(t.seed) + offset) % patternLength
	return t.world.pattern[at : at+min(n, patternLength)]
}

// Flow is a TCP connection that carries bytes one way. They follow a pattern,
// and the receiver checks every one.
type Flow struct {
	transfer
	// Bytes is how many it carries, Endless if without end.
	Bytes int64
	// Received is how many have been read at the other end so far.
	Received int64
	// Closed is when the end of the stream was read, 0 before. It may come later
	// than End, for a FIN can be lost like anything else.
	Closed time.Duration

	sent int64
	buf  []byte
}

// Endless is the length of a flow that goes on as long as the World.
const Endless = -1

// Flow starts a flow between two hosts now.
func (w *World) Flow(from, to string, bytes int64) *Flow {
	return w.FlowAt(w.Now(), from, to, bytes)
}

// FlowAt starts a flow at a time.
func (w *World) FlowAt(at time.Duration, from, to string, bytes int64) *Flow {
	f := &Flow{transfer: transfer{From: from, To: to, Start: at}, Bytes: bytes}
	w.begin(&f.transfer, f.send, f.receive)
	if bytes >= 0 {
		f.wait()
	}
	return f
}

// Goodput returns the bits per second received, from Start to End or, if the
// flow has not ended, until now.
func (f *Flow) Goodput() float64 {
	until := f.End
	if until == 0 {
		until = f.world.Now()
	}
	if until <= f.Start {
		return 0
	}
	return float64(f.Received*8) / (until - f.Start).Seconds()
}

func (f *Flow) send(e *end) (more bool) {
	for f.sent != f.Bytes {
		left := f.Bytes - f.sent
		if f.Bytes < 0 {
			left = patternLength
		}
		n, err := e.Write(f.piece(f.sent, left))
		f.sent += int64(n)
		if err != nil {
			return f.waits(err)
		}
	}
	return false
}

func (f *Flow) receive(e *end) (more bool) {
	if f.buf == nil {
		f.buf = make([]byte, patternLength)
	}
	for {
		n, err := e.Read(f.buf)
		if !bytes.Equal(f.buf[:n], f.piece(f.Received, int64(n))) {
			f.fail(fmt.Errorf("bytes %d to %d are not what was sent", f.Received, f.Received+int64(n)))
			return false
		}
		f.Received += int64(n)
		// The end of the stream is not waited for: what counts is when the last
		// byte is there.
		if f.Received == f.Bytes && f.End == 0 {
			f.end()
		}
		if err == io.EOF && f.Received == f.Bytes {
			f.buf, f.Closed = nil, f.world.Now()
			return false
		}
		if err != nil {
			return f.waits(err)
		}
	}
}
