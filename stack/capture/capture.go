// Package capture writes what a Host sends, gets and delivers to a file that Wireshark opens,
// each packet with a comment: by which path it goes, to which flowcell it belongs, how long the
// resequencer held it and why it was let go.
//
//	c, err := capture.Start(host, file, capture.Options{Count: 10000})
//	...
//	err = c.Close()
//
// It is a package of its own, so that programs which do not capture do not link what writes the
// files.
package capture

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"weft/internal/capture"
	"weft/internal/capture/file"
	"weft/internal/capture/tap"
	"weft/stack"
)

// Options bound a capture. A zero is no bound.
type Options struct {
	Snap     int           // bytes of each packet that are kept, up to 64 KB
	Count    uint64        // packets
	Bytes    int64         // of what is written, about
	Duration time.Duration // of the capture, by the packets' times
}

// Capture is one that runs.
type Capture struct {
	watch   *stack.Watch
	done    chan struct{}
	packets atomic.Uint64
	err     error // once done is closed
}

// room is how many packets wait for the file.
const room = 1 << 13

// Start begins to write the packets of a Host to w as pcapng, until Close, or a bound is
// reached. A write that fails ends it, too: Close returns the error. w is the caller's to close
// afterwards.
func Start(h *stack.Host, w io.Writer, o Options) (*Capture, error) {
	if o.Snap < 0 || o.Bytes < 0 || o.Duration < 0 {
		return nil, errors.New("capture: a bound in Options is below 0: leave it 0 for none")
	}
	c := &Capture{watch: h.Watch(o.Snap, room), done: make(chan struct{})}
	to := file.NewWriter(w, file.Limits{Snap: o.Snap, Packets: o.Count, Bytes: o.Bytes, Duration: o.Duration})
	go c.run(to, capture.NewAnnotator(capture.NewTopology(h.Topology())))
	return c, nil
}

// run writes until the Watch is closed.
func (c *Capture) run(to *file.Writer, a *capture.Annotator) {
	defer close(c.done)
	for {
		s, ok := c.watch.Next()
		if !ok {
			break
		}
		if to.Full() || c.err != nil {
			c.watch.Close()
			continue
		}
		r := capture.Record{At: s.At, Interface: s.Interface, Point: points[s.Interface], Out: s.Interface == tap.Sent,
			Bytes: s.Bytes, Length: s.Length, HasPath: s.Path >= 0, Path: s.Path, Hold: s.Hold, Cause: s.Cause}
		n := a.Note(&r)
		c.err = to.Write(&r, &n)
		c.packets.Store(to.Packets())
	}
	to.Dropped(tap.Arrived, c.watch.Dropped()) // counted together, and most are of what arrives
	c.err = errors.Join(c.err, to.Close())
}

var points = map[string]capture.Point{tap.Sent: capture.PointSent, tap.Arrived: capture.PointArrived, tap.Delivered: capture.PointDelivered}

// Packets is how many were written.
func (c *Capture) Packets() uint64 { return c.packets.Load() }

// Dropped is how many found no room. It rises if w is slower than the Host.
func (c *Capture) Dropped() uint64 { return c.watch.Dropped() }

// Done is closed when nothing more is written: after Close, or when a bound is reached.
func (c *Capture) Done() <-chan struct{} { return c.done }

// Close ends the capture, and writes the rest. It may be called more than once.
func (c *Capture) Close() error {
	c.watch.Close()
	<-c.done
	return c.err
}
