package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"weft/internal/live/ui"
)

// demoLive is the page of weft demo --live. A nil *demoLive is none.
type demoLive struct {
	server *ui.Server
	cancel context.CancelFunc
	done   chan error
	close  func() error
}

// startLive serves the picture of the demo's lab, and of those that it builds later.
func (o *demoOptions) startLive(ctx context.Context) (*demoLive, error) {
	if !o.live {
		return nil, nil
	}
	l, err := ui.Listen(o.liveListen, false)
	if err != nil {
		return nil, usagef("--live-listen: %w", err)
	}
	if o.fabric != "netns" {
		return nil, errors.Join(usagef("--live: the fabric is in memory, in virtual time, in which there is nothing to watch; run as root, for network namespaces"), l.Close())
	}
	src, err := awaitLab(o.name)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	d := &demoLive{ui.New(src, ui.Options{}), cancel, make(chan error, 1), src.Close}
	fmt.Fprintln(os.Stderr, "live:", l.URL(""))
	go func() { d.done <- d.server.Serve(ctx, l) }()
	return d, nil
}

// mark tells the page what begins.
func (d *demoLive) mark(text string) {
	if d != nil {
		d.server.Mark(text)
	}
}

// end ends the page.
func (d *demoLive) end() error {
	if d == nil {
		return nil
	}
	d.cancel()
	return errors.Join(<-d.done, d.close())
}
