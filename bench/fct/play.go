package fct

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"weft/bench/sim/workload"
	"weft/bench/testbed"
)

const port = 5002

// lead is the time before a run begins, in which its first flows get ready.
const lead = 20 * time.Millisecond

// player plays flows on a session's hosts.
type player struct {
	hosts           []testbed.Host
	begin, deadline time.Time
	open            testbed.Closers // listeners and connections
	served          sync.WaitGroup

	mu     sync.Mutex
	broken error // why the first flow failed before the deadline
}

// play begins each flow at its time, or when the one has ended that it follows. Flows of one time
// begin together. It returns when all have finished, or have failed, or at the deadline, which is
// until after the first could begin. Outcomes are in the order of flows; a flow whose predecessor
// did not end has not begun. broken says why the first flow failed that did not miss the deadline.
// It is a shortfall if other bytes arrived than were sent. begun, if not nil, is called once, when
// all flows have begun but those that never will.
func play(ctx context.Context, s *testbed.Session, flows plan, until time.Duration, begun func()) (all []outcome, broken, err error) {
	p := &player{hosts: s.Hosts}
	defer p.stop()
	if err := p.listen(); err != nil {
		return nil, nil, err
	}
	p.begin = time.Now().Add(lead)
	p.deadline = p.begin.Add(until)
	defer context.AfterFunc(ctx, p.open.Close)()
	ctx, cancel := context.WithDeadline(ctx, p.deadline)
	defer cancel()
	all = make([]outcome, len(flows.flows))
	errs := make([]error, len(flows.flows))
	ended := make([]chan struct{}, len(flows.flows)) // of flows that others follow
	for i := range flows.flows {
		if after := flows.follows(i); after >= 0 && ended[after] == nil {
			ended[after] = make(chan struct{})
		}
	}
	if begun == nil {
		begun = func() {}
	}
	beginnings := newBeginnings(len(flows.flows), begun)
	var sent sync.WaitGroup
	one := func(i int, line *startline) {
		if ended[i] != nil {
			defer close(ended[i])
		}
		f := flows.flows[i]
		due := p.begin.Add(f.Start)
		if line != nil {
			line.wait()
		} else {
			after := flows.follows(i)
			<-ended[after]
			if !all[after].finished && flows.apart == 0 {
				beginnings.one()
				return
			}
			if free := time.Now().Add(flows.apart); free.After(due) {
				due = free
			}
			waitUntil(ctx, due)
		}
		beginnings.one()
		all[i], errs[i] = p.send(ctx, f, due)
	}
	for next := 0; next < len(flows.flows); {
		start, line := flows.flows[next].Start, newStartline()
		for ; next < len(flows.flows) && flows.flows[next].Start == start; next++ {
			i := next
			if flows.follows(i) >= 0 {
				sent.Go(func() { one(i, nil) })
				continue
			}
			line.ready.Add(1)
			sent.Go(func() { one(i, line) })
		}
		line.ready.Wait()
		waitUntil(ctx, p.begin.Add(start))
		close(line.open)
	}
	sent.Wait()
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, nil, ctx.Err()
	}
	return all, p.broken, errors.Join(errs...)
}

// waitUntil returns at t, or when ctx ends.
func waitUntil(ctx context.Context, t time.Time) {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// stop resets the connections that are left, so that they no longer load the fabric.
func (p *player) stop() {
	p.open.Close()
	p.served.Wait()
}

// at is where a host listens.
func at(h testbed.Host) string { return net.JoinHostPort(h.Address, strconv.Itoa(port)) }

func (p *player) listen() error {
	for _, h := range p.hosts {
		l, err := h.Listen("tcp", at(h))
		if err != nil {
			return err
		}
		p.open.Keep(l)
		p.served.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				p.open.Keep(c)
				p.served.Go(func() { serve(c) })
			}
		})
	}
	return nil
}

// serve reads until the sender has ended its side, and answers how many bytes there were.
func serve(c net.Conn) {
	defer c.Close()
	n, err := io.Copy(io.Discard, c)
	if err != nil {
		return // the sender notices
	}
	c.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// shortfall is the error of a flow of which other bytes arrived than were sent.
type shortfall struct {
	workload.Flow
	arrived int64
}

func (s shortfall) Error() string {
	return fmt.Sprintf("host %d sent %d bytes to host %d, and %d arrived", s.Src, s.Bytes, s.Dst, s.arrived)
}

// send plays one flow, which is due now.
func (p *player) send(ctx context.Context, f workload.Flow, due time.Time) (o outcome, err error) {
	start := time.Now()
	o.begun, o.began, o.late = true, start.Sub(p.begin), start.Sub(due)
	n, err := p.transfer(ctx, f)
	o.took = time.Since(start)
	switch {
	case err == nil && n != f.Bytes:
		o.took = p.deadline.Sub(start)
		return o, shortfall{f, n}
	case err == nil:
		o.finished = true
		return o, nil
	}
	o.took = p.deadline.Sub(start)
	if !errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.broken == nil {
			p.broken = fmt.Errorf("a flow of %d bytes from host %d to host %d after %v: %w", f.Bytes, f.Src, f.Dst, time.Since(start).Round(time.Millisecond), err)
		}
	}
	return o, nil
}

// transfer opens a connection, sends a flow's bytes, and returns how many arrived.
func (p *player) transfer(ctx context.Context, f workload.Flow) (arrived int64, err error) {
	c, err := p.hosts[f.Src].DialContext(ctx, "tcp", at(p.hosts[f.Dst]))
	if err != nil {
		return 0, err
	}
	p.open.Keep(c)
	if err := c.SetDeadline(p.deadline); err != nil {
		return 0, err
	}
	for left := f.Bytes; left > 0; {
		n, err := c.Write(zeros[:min(left, int64(len(zeros)))])
		if err != nil {
			return 0, err
		}
		left -= int64(n)
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return 0, err
	}
	var answer [8]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(answer[:])), c.Close()
}

// zeros is what all flows send.
var zeros [64 << 10]byte
