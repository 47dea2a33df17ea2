package world

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

// Trips are requests over one TCP connection, one at a time, that are answered
// with their own bytes.
type Trips struct {
	transfer
	// Count is how many there are, Size how many bytes each has, up to 65521;
	// Pause is the time from an answer to the next request.
	Count, Size int
	Pause       time.Duration
	// Every, if not 0, is the shortest time from one request to the next. It may be
	// set until the World runs.
	Every time.Duration
	// Times says how long each took, from the first byte written to the last
	// byte read. The first includes the handshake.
	Times []time.Duration

	asked     time.Duration // when the request that is under way was made
	pausing   bool
	sent, got int64  // bytes, of all requests
	buf       []byte // the client's
	echo      []byte // the server's
	unsent    []byte // in echo
}

// RoundTrips starts round trips between two hosts now.
func (w *World) RoundTrips(from, to string, count, size int, pause time.Duration) *Trips {
	return w.RoundTripsAt(w.Now(), from, to, count, size, pause)
}

// RoundTripsAt starts round trips at a time.
func (w *World) RoundTripsAt(at time.Duration, from, to string, count, size int, pause time.Duration) *Trips {
	t := &Trips{
		transfer: transfer{From: from, To: to, Start: at},
		Count:    count, Size: size, Pause: pause,
		asked: at,
	}
	if count < 1 || size < 1 || size > patternLength {
		w.fail(fmt.Errorf("world: %d round trips of %d bytes: want at least 1, of 1 to %d", count, size, patternLength))
		return t
	}
	t.buf, t.echo = make([]byte, size), make([]byte, size)
	w.begin(&t.transfer, t.ask, t.answer)
	t.wait()
	return t
}

// ask is the client.
func (t *Trips) ask(e *end) (more bool) {
	for !t.pausing {
		until := int64((len(t.Times) + 1) * t.Size)
		if t.sent < until {
			n, err := e.Write(t.piece(t.sent, until-t.sent))
			t.sent += int64(n)
			if err != nil {
				return t.waits(err)
			}
			continue
		}
		n, err := e.Read(t.buf[:until-t.got])
		if !bytes.Equal(t.buf[:n], t.piece(t.got, int64(n))) {
			t.fail(fmt.Errorf("answer %d is not the request", len(t.Times)+1))
			return false
		}
		t.got += int64(n)
		if err != nil {
			return t.waits(err)
		}
		if t.got == until && !t.next(e) {
			t.end()
			return false
		}
	}
	return true
}

// next notes an answer and prepares for the next request, false if there is
// none.
func (t *Trips) next(e *end) bool {
	w := t.world
	t.Times = append(t.Times, w.Now()-t.asked)
	if len(t.Times) == t.Count {
		return false
	}
	t.asked = max(w.Now()+t.Pause, t.asked+t.Every)
	if t.asked > w.Now() {
		t.pausing = true
		w.At(t.asked, func() {
			t.pausing = false
			w.wake(&e.task)
		})
	}
	return true
}

// answer is the server.
func (t *Trips) answer(e *end) (more bool) {
	for {
		if len(t.unsent) > 0 {
			n, err := e.Write(t.unsent)
			t.unsent = t.unsent[n:]
			if err != nil {
				return t.waits(err)
			}
			continue
		}
		n, err := e.Read(t.echo)
		t.unsent = t.echo[:n]
		if err == io.EOF {
			return false
		}
		if err != nil {
			return t.waits(err)
		}
	}
}
