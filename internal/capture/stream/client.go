package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"weft/internal/capture"
	"weft/internal/exitcode"
)

// Client reads a daemon's packets. It is not safe for concurrent use, but Stop is.
type Client struct {
	name    string
	body    io.ReadCloser
	stop    context.CancelFunc
	stopped atomic.Bool
	dropped atomic.Uint64
}

// Dial asks the daemon behind a status socket for its packets. prefix goes before the names of
// their interfaces. Only root may ask.
func Dial(socket, prefix string, snap int) (*Client, error) {
	ctx, cancel := context.WithCancel(context.Background())
	over := http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://weft/capture?snap=%d", snap), nil)
	if err != nil {
		cancel()
		return nil, err
	}
	resp, err := over.RoundTrip(req)
	if err != nil {
		cancel()
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		resp.Body.Close()
		cancel()
		switch resp.StatusCode {
		case http.StatusNotFound:
			return nil, errors.New("what runs there shows no packets: it is no weft host, or an older one")
		case http.StatusForbidden:
			return nil, exitcode.AsAbsent(errors.New("only root may see a daemon's packets: run it as root"))
		}
		return nil, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(said)))
	}
	return &Client{name: prefix, body: resp.Body, stop: cancel}, nil
}

// Run hands packets to each until Stop is called or the daemon ends.
func (c *Client) Run(each func(*capture.Record)) error {
	defer c.body.Close()
	b := bufio.NewReaderSize(c.body, 1<<18)
	for {
		r, dropped, err := Next(b)
		switch {
		case c.stopped.Load() || errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("weft host: %w", err)
		}
		c.dropped.Store(dropped)
		r.Interface = c.name + r.Interface
		each(&r)
	}
}

// Name is what a daemon is called as a source, behind the prefix.
const Name = "weft"

// Name is the name of the source.
func (c *Client) Name() string { return c.name + Name }

// Dropped is how many packets the daemon had no room for.
func (c *Client) Dropped() uint64 { return c.dropped.Load() }

// Stop makes Run return.
func (c *Client) Stop() { c.stopped.Store(true); c.stop() }

// Close does what Stop does.
func (c *Client) Close() error { c.Stop(); return nil }
