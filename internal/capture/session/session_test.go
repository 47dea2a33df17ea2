package session

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"weft/internal/capture"
)

// fake shows packets, and then waits until it is stopped, or ends.
type fake struct {
	name    string
	at      []time.Time
	err     error
	ends    bool
	stopped chan struct{}
}

func (f *fake) Name() string    { return f.name }
func (f *fake) Dropped() uint64 { return 3 }
func (f *fake) Stop()           { close(f.stopped) }

func (f *fake) Run(each func(*capture.Record)) error {
	for _, at := range f.at {
		each(&capture.Record{At: at, Interface: f.name, Bytes: []byte{0x45}})
	}
	if !f.ends {
		<-f.stopped
	}
	return f.err
}

func times(base time.Time, ms ...int) (list []time.Time) {
	for _, m := range ms {
		list = append(list, base.Add(time.Duration(m)*time.Millisecond))
	}
	return list
}

func newFake(name string, ends bool, at []time.Time) *fake {
	return &fake{name: name, at: at, ends: ends, stopped: make(chan struct{})}
}

// Packets of several sources are written in the order of their times; that all sources have
// ended ends the capture.
func TestRun_inOrder(t *testing.T) {
	base := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	var got []time.Time
	res, err := Run(t.Context(), Config{Annotator: capture.NewAnnotator(nil), Sources: []Source{newFake("a", true, times(base, 1, 4, 9)), newFake("b", true, times(base, 2, 3, 10))},
		Write: func(r *capture.Record, _ *capture.Note) (bool, error) { got = append(got, r.At); return false, nil }})
	if err != nil || res.Seen != 6 || res.Matched != 6 || res.Dropped["a"] != 3 || res.Dropped["b"] != 3 || len(res.Ended) != 2 {
		t.Errorf("%+v, %v", res, err)
	}
	if !slices.IsSortedFunc(got, time.Time.Compare) || len(got) != 6 {
		t.Errorf("written: %v", got)
	}
}

// The end: enough written, an error of the file or of a source, a time, a signal.
func TestRun_ends(t *testing.T) {
	base := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	run := func(ctx context.Context, c Config, s *fake) (Result, error) {
		c.Annotator, c.Sources = capture.NewAnnotator(nil), []Source{s}
		return Run(ctx, c)
	}
	n := 0
	count := func(*capture.Record, *capture.Note) (bool, error) { n++; return n == 2, nil }
	if res, err := run(t.Context(), Config{Write: count}, newFake("a", false, times(base, 1, 2, 3, 4))); err != nil || n != 2 || res.Matched != 2 {
		t.Errorf("enough: %d, %+v, %v", n, res, err)
	}
	broken := errors.New("broken")
	if _, err := run(t.Context(), Config{Write: func(*capture.Record, *capture.Note) (bool, error) { return false, broken }}, newFake("a", false, times(base, 1))); !errors.Is(err, broken) {
		t.Errorf("the file breaks: %v", err)
	}
	f := newFake("a", true, nil)
	f.err = broken
	if _, err := run(t.Context(), Config{Write: count}, f); !errors.Is(err, broken) {
		t.Errorf("a source breaks: %v", err)
	}
	if _, err := run(t.Context(), Config{Write: count, Duration: time.Millisecond}, newFake("a", false, nil)); err != nil {
		t.Errorf("a time: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ctx, Config{Write: count}, newFake("a", false, times(base, 1))); err != nil {
		t.Errorf("a signal: %v", err)
	}
}
