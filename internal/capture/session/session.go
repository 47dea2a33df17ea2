// Package session runs a capture: it takes packets of several sources, puts them into the order
// of their times, annotates and filters them, and writes what is wanted.
package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"weft/internal/capture"
)

// Source shows packets. Run hands them to each until Stop is called; what it hands over belongs
// to each only during the call.
type Source interface {
	Name() string
	Run(each func(*capture.Record)) error
	Stop()
	Dropped() uint64 // packets that the source had no room for
}

// Config says what is captured.
type Config struct {
	Sources   []Source
	Annotator *capture.Annotator
	Filter    capture.Filter
	// Write takes each wanted packet, in the order of their times. It returns true when it
	// wants no more.
	Write func(*capture.Record, *capture.Note) (full bool, err error)
	// Tick, if not nil, is called several times a second, between calls of Write.
	Tick func()
	// Duration ends the capture; 0: something else does.
	Duration time.Duration
}

// Result counts what became of packets.
type Result struct {
	Seen    uint64            `json:"seen"`    // by all sources
	Matched uint64            `json:"matched"` // the filter
	Dropped map[string]uint64 `json:"dropped"` // by source: for want of room
	Late    uint64            `json:"late"`    // out of the order of their times, for want of room
	Ended   []string          `json:"ended"`   // sources that had no more before the capture was over
}

const (
	// window is how late a source may be. A packet socket keeps packets back for 50 ms.
	window = 250 * time.Millisecond
	// queue is how many packets wait. A source that finds no room waits, and drops and counts
	// what it then has no room for itself.
	queue = 1 << 8
	tick  = 100 * time.Millisecond
)

// Run captures until ctx is done, all sources have ended or Write wants no more. That ctx is
// done is no error.
func Run(ctx context.Context, c Config) (res Result, err error) {
	in := make(chan capture.Record, queue)
	done := make(chan struct{})
	ended := make(chan end, len(c.Sources))
	var running sync.WaitGroup
	for _, s := range c.Sources {
		running.Go(func() {
			err := s.Run(func(r *capture.Record) {
				q := *r
				q.Bytes = append([]byte(nil), r.Bytes...)
				select {
				case in <- q:
				case <-done:
				}
			})
			if err != nil {
				err = fmt.Errorf("%s: %w", s.Name(), err)
			}
			ended <- end{s.Name(), err}
		})
	}
	defer func() {
		close(done)
		for _, s := range c.Sources {
			s.Stop()
		}
		running.Wait()
		res.Dropped = make(map[string]uint64)
		for _, s := range c.Sources {
			res.Dropped[s.Name()] += s.Dropped()
		}
	}()
	if c.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Duration)
		defer cancel()
	}
	err = c.loop(ctx, in, ended, &res)
	return res, err
}

// end is that of a source.
type end struct {
	name string
	err  error
}

// loop is Run's, with the sources running.
func (c *Config) loop(ctx context.Context, in <-chan capture.Record, ended <-chan end, res *Result) error {
	s := capture.Sorter{Window: window}
	full := false
	var failed error
	emit := func(r *capture.Record) {
		if full || failed != nil {
			return
		}
		n := c.Annotator.Note(r)
		if !c.Filter.Match(&n) {
			return
		}
		res.Matched++
		full, failed = c.Write(r, &n)
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	left := len(c.Sources)
	add := func(r capture.Record) {
		res.Seen++
		s.Add(r, emit)
	}
	for !full && failed == nil && left > 0 {
		select {
		case r := <-in:
			add(r)
		case now := <-ticker.C:
			s.Due(now, emit)
			if c.Tick != nil {
				c.Tick()
			}
		case e := <-ended:
			left--
			res.Ended = append(res.Ended, e.name)
			failed = errors.Join(failed, e.err)
		case <-ctx.Done():
			c.rest(in, add)
			left = 0
		}
	}
	for len(in) > 0 {
		add(<-in)
	}
	s.Flush(emit)
	res.Late = s.Early()
	return failed
}

// rest takes what packet sockets still keep back.
func (c *Config) rest(in <-chan capture.Record, add func(capture.Record)) {
	end := time.After(2 * tick)
	for {
		select {
		case r := <-in:
			add(r)
		case <-end:
			return
		}
	}
}
