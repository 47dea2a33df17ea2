package throughput

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A request is its length, four bytes, and so many bytes; the response is the bytes.
const (
	respondPort  = "5002"
	smallRequest = 64
	largeRequest = 16 << 10
	// anewAtATime are how many connections are being opened anew at a time.
	anewAtATime = 16
)

// requestTime is how long requests are measured, so that the answer is not late.
func (b *bench) requestTime() time.Duration { return min(b.options.Duration, answerLimit/2) }

// requests measures requests of both sizes.
func (b *bench) requests(ctx context.Context, r *run, beside bool) (all []Latency, err error) {
	if !b.options.Latency {
		return nil, nil
	}
	if _, err := r.carried(ctx); err != nil {
		return nil, err
	}
	for _, size := range []int{smallRequest, largeRequest} {
		a, err := r.sender.ask(ctx, fmt.Sprintf("%s %d %v", cmdLatency, size, b.requestTime()))
		if err != nil {
			return nil, fmt.Errorf("requests of %d bytes: %w", size, err)
		}
		a.Latency.BesideBulk = beside
		all = append(all, *a.Latency)
	}
	return all, nil
}

// anew measures connections a second.
func (b *bench) anew(ctx context.Context, r *run) (perSecond float64, err error) {
	if !b.options.Anew {
		return 0, nil
	}
	if _, err := r.carried(ctx); err != nil {
		return 0, err
	}
	a, err := r.sender.ask(ctx, fmt.Sprintf("%s %v", cmdAnew, b.requestTime()))
	if err != nil {
		return 0, fmt.Errorf("connections opened anew: %w", err)
	}
	return a.Anew, nil
}

// request measures what a command asks for.
func (w *worker) request(words []string) (l *Latency, anew float64, err error) {
	host, _, err := net.SplitHostPort(w.target)
	if err != nil {
		return nil, 0, err
	}
	d, err := time.ParseDuration(words[len(words)-1])
	if err != nil {
		return nil, 0, err
	}
	to := net.JoinHostPort(host, respondPort)
	if words[0] == cmdAnew {
		anew, err = w.host.anew(to, d)
		return nil, anew, err
	}
	size, err := strconv.Atoi(words[1])
	if err != nil {
		return nil, 0, err
	}
	l, err = w.host.latency(to, size, d)
	return l, 0, err
}

// latency makes one request after the other.
func (h *host) latency(to string, size int, d time.Duration) (*Latency, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
	defer cancel()
	c, err := h.DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(d + answerLimit/4))
	b := newRequest(size)
	var took []float64
	for began := time.Now(); len(took) == 0 || time.Since(began) < d; {
		at := time.Now()
		if err := ask(c, b); err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(at))/float64(time.Microsecond))
	}
	slices.Sort(took)
	of := func(part float64) float64 { return took[min(int(part*float64(len(took))), len(took)-1)] }
	return &Latency{Bytes: size, P50: of(0.5), P99: of(0.99), P999: of(0.999)}, nil
}

// anew opens connections, each for one small request, and returns how many a second.
func (h *host) anew(to string, d time.Duration) (perSecond float64, err error) {
	var opened atomic.Int64
	var ended sync.WaitGroup
	errs := make([]error, anewAtATime)
	ctx, cancel := context.WithTimeout(context.Background(), d+answerLimit/4)
	defer cancel()
	began := time.Now()
	for i := range errs {
		ended.Go(func() {
			for b := newRequest(smallRequest); errs[i] == nil && time.Since(began) < d; opened.Add(1) {
				errs[i] = h.askOnce(ctx, to, b)
			}
		})
	}
	ended.Wait()
	return float64(opened.Load()) / time.Since(began).Seconds(), errors.Join(errs...)
}

// askOnce makes a request over a connection of its own. The responder closes first, so that
// its end waits for what is late, and the ports here are free again.
func (h *host) askOnce(ctx context.Context, to string, b []byte) error {
	c, err := h.DialContext(ctx, "tcp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	c.SetDeadline(deadline)
	b[0] |= once
	if err := ask(c, b); err != nil {
		return err
	}
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		return fmt.Errorf("behind the response: %v", err)
	}
	return nil
}

// once, in the first byte of a request's length, says that the responder closes then.
const once = 0x80

func newRequest(size int) []byte {
	b := make([]byte, 4+size)
	binary.BigEndian.PutUint32(b, uint32(size))
	return b
}

// ask makes a request, and reads the response.
func ask(c net.Conn, request []byte) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	_, err := io.ReadFull(c, request[4:])
	return err
}

// respond answers requests until it is closed.
func respond(h *host) (io.Closer, error) {
	l, err := h.Listen("tcp", net.JoinHostPort(h.address.String(), respondPort))
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answer(c)
		}
	}()
	return l, nil
}

// answer answers the requests of a connection.
func answer(c net.Conn) {
	defer c.Close()
	b := make([]byte, 4+largeRequest)
	for {
		if _, err := io.ReadFull(c, b[:4]); err != nil {
			return
		}
		last := b[0]&once != 0
		b[0] &^= once
		size := binary.BigEndian.Uint32(b)
		if size > largeRequest {
			return
		}
		if _, err := io.ReadFull(c, b[4:4+size]); err != nil {
			return
		}
		if _, err := c.Write(b[4 : 4+size]); err != nil || last {
			return
		}
	}
}
