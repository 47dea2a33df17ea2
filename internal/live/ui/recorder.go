package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"weft/internal/live"
)

// Bounds of clients and of what waits for one.
const (
	maxClients = 32
	maxWaiting = 8 // messages; above it a client is dropped
	maxMarks   = 32
)

// recorder asks a source and keeps what comes of it.
type recorder struct {
	source   live.Source
	interval time.Duration

	mu       sync.Mutex
	meter    live.Meter
	ring     live.Ring
	full     *live.Fabric   // what there is; nil: not known yet
	bundling *live.Bundling // nil: all of it is drawn
	layout   live.Layout
	whole    *live.Frame // the latest of full
	marks    []live.Event
	trouble  string
	clients  map[*client]struct{}
	slow     uint64 // clients that were dropped
	cost     time.Duration
}

// client is a browser that listens.
type client struct {
	messages chan []byte // closed if it was dropped
}

var errTooMany = fmt.Errorf("%d browsers watch already, and more would take this machine's time: close a tab", maxClients)

// run asks until ctx is done. If asking takes long it asks less often, so that it takes a fifth
// of the time at most.
func (r *recorder) run(ctx context.Context) {
	for {
		start := time.Now()
		if err := r.step(ctx); err != nil && ctx.Err() == nil {
			r.tell(err.Error())
		}
		took := time.Since(start)
		r.mu.Lock()
		r.cost = took
		r.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(r.interval-took, 4*took)):
		}
	}
}

// step makes a frame and sends it.
func (r *recorder) step(ctx context.Context) error {
	fab, err := r.source.Fabric(ctx)
	if err != nil {
		return err
	}
	if err := fab.Check(); err != nil {
		return err
	}
	s, err := r.source.Sample(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full == nil || r.full.Version != fab.Version {
		r.see(fab)
	}
	frame := r.meter.Next(fab, s, r.marks...)
	r.marks, r.whole, r.trouble = nil, frame, ""
	if r.bundling != nil {
		frame = r.bundling.Frame(frame)
	}
	before := r.ring.Latest()
	r.ring.Add(frame)
	r.send(event("frame", live.Diff(before, frame)))
	return nil
}

// see takes a fabric that is another one than before.
func (r *recorder) see(fab *live.Fabric) {
	r.full, r.bundling = fab, nil
	if len(fab.Links) > live.MaxDrawn {
		r.bundling = live.Bundle(fab)
	}
	r.layout = r.drawn().Place()
	r.send(event("fabric", r.picture()))
}

// drawn is the fabric as it is drawn.
func (r *recorder) drawn() *live.Fabric {
	if r.bundling != nil {
		return r.bundling.Fabric
	}
	return r.full
}

// picture is what a page must know before the first frame.
type picture struct {
	*live.Fabric
	Layout   live.Layout `json:"layout"`
	Modes    []string    `json:"modes"`      // of failures
	Interval float64     `json:"interval_s"` // from one frame to the next
	KeepFor  float64     `json:"keep_s"`
}

func (r *recorder) picture() picture {
	p := picture{Fabric: r.drawn(), Layout: r.layout, Modes: []string{}, Interval: r.interval.Seconds(), KeepFor: live.KeepFor.Seconds()}
	if b, ok := r.source.(live.Breaker); ok && p.CanFail {
		p.Modes = b.Modes()
	}
	return p
}

// tell tells that nothing can be told.
func (r *recorder) tell(trouble string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.trouble == trouble {
		return
	}
	r.trouble = trouble
	r.send(event("trouble", trouble))
}

// mark adds an event to the next frame.
func (r *recorder) mark(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.marks) < maxMarks {
		r.marks = append(r.marks, live.Event{At: time.Now(), Kind: live.EventMark, Text: text})
	}
}

// event is a message of server-sent events. JSON has no line breaks.
func event(name string, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		text, name = fmt.Appendf(nil, "%q", err), "trouble"
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, text)
}

// send sends a message to all clients, with r.mu held.
func (r *recorder) send(message []byte) {
	for c := range r.clients {
		select {
		case c.messages <- message:
		default:
			close(c.messages)
			delete(r.clients, c)
			r.slow++
		}
	}
}

// join adds a client, which first gets all there is.
func (r *recorder) join() (*client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.clients) >= maxClients {
		return nil, errTooMany
	}
	c := &client{messages: make(chan []byte, maxWaiting)}
	if r.full != nil {
		c.messages <- event("fabric", r.picture())
		if f := r.ring.Latest(); f != nil {
			c.messages <- event("frame", live.Diff(nil, f))
		}
	}
	if r.trouble != "" {
		c.messages <- event("trouble", r.trouble)
	}
	r.clients[c] = struct{}{}
	return c, nil
}

// leave forgets a client.
func (r *recorder) leave(c *client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.clients, c)
}

var errNothing = errors.New("nothing is known yet; ask again in a second")

// frame returns one that is kept; 0 is the latest.
func (r *recorder) frame(seq uint64) (*live.Frame, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.ring.Latest()
	if seq != 0 {
		f = r.ring.Frame(seq)
	}
	switch {
	case f != nil:
		return f, nil
	case r.ring.Len() == 0:
		return nil, errNothing
	}
	return nil, fmt.Errorf("frame %d is no more: those from %d to %d are kept", seq, r.ring.Summaries()[0].Seq, r.ring.Latest().Seq)
}

// history is what the time line shows.
type history struct {
	Frames  []live.Summary `json:"frames"`
	Evicted uint64         `json:"evicted"` // frames that were younger than ten minutes, for want of room
	Slow    uint64         `json:"slow"`    // clients that were dropped
	Clients int            `json:"clients"`
	Cost    float64        `json:"cost_ms"` // of the latest frame, to this machine
}

func (r *recorder) history() history {
	r.mu.Lock()
	defer r.mu.Unlock()
	return history{r.ring.Summaries(), r.ring.Evicted(), r.slow, len(r.clients), float64(r.cost.Microseconds()) / 1000}
}

// series is what a link did in all frames that are kept.
type series struct {
	Seq   []uint64    `json:"seq"`
	Up    []live.Flow `json:"up"`
	Down  []live.Flow `json:"down"`
	State []string    `json:"state"`
}

// linkSeries returns that of a link that is drawn.
func (r *recorder) linkSeries(link int) (s series, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full == nil {
		return s, errNothing
	}
	if link < 0 || link >= len(r.drawn().Links) {
		return s, fmt.Errorf("link %d: the picture has links 0 to %d", link, len(r.drawn().Links)-1)
	}
	s = series{[]uint64{}, []live.Flow{}, []live.Flow{}, []string{}}
	for _, f := range r.ring.Frames() {
		if link < len(f.Links) {
			l := f.Links[link]
			s.Seq, s.Up, s.Down, s.State = append(s.Seq, f.Seq), append(s.Up, l.Up), append(s.Down, l.Down), append(s.State, l.State.String())
		}
	}
	return s, nil
}

// maxMembers is how many links of a bundle are listed.
const maxMembers = 20

// member is a link of a bundle.
type member struct {
	Name string `json:"name"`
	live.LinkFrame
}

// members returns the links of a bundle that have most to tell: those that are down, then those
// that drop most, then the busiest.
func (r *recorder) members(link int) ([]member, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.whole == nil:
		return nil, errNothing
	case r.bundling == nil:
		return []member{}, nil
	case link < 0 || link >= len(r.bundling.Fabric.Links):
		return nil, fmt.Errorf("bundle %d: the picture has bundles 0 to %d", link, len(r.bundling.Fabric.Links)-1)
	}
	all := []member{}
	for i, b := range r.bundling.Links {
		if b == link {
			all = append(all, member{r.full.Links[i].Name, r.whole.Links[i]})
		}
	}
	sortMembers(all)
	return all[:min(len(all), maxMembers)], nil
}
