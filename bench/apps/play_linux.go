package apps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"weft/bench/testbed"
	"weft/topology"
)

// dirs are the directories of an app's programs at a host. Server and client have one each.
var dirs = map[string][]string{"redis": {"redis-server", "redis-benchmark"}, "pgbench": {"postgres", "pgbench"}, "nginx": {"nginx", "wrk"},
	"iperf3": {"iperf3-server", "iperf3"}, "rsync": {"rsync-daemon", "rsync"}}

// inside does something in the namespace of a host (lab.Lab.Do).
type inside func(h topology.NodeID, f func() error) error

// runOnce runs a program that sets something up, to its end.
func runOnce(ctx context.Context, c *exec.Cmd, input string) (text string, err error) {
	c.Stdin = strings.NewReader(input)
	p, err := start(c, "")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	_, err = p.await(ctx, time.Now())
	return p.out.String(), err
}

// servers are those of an app, one at each host.
type servers struct {
	work work
	list []*process
}

// serve starts servers at all hosts and returns when all listen. On an error none runs.
func serve(ctx context.Context, in inside, s *site, w work, hosts []topology.Node) (*servers, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all := &servers{work: w}
	for _, h := range hosts {
		var p *process
		err := in(h.ID, func() (err error) {
			p, err = start(w.server(s, h), "")
			return err
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", h.Name, err), all.close())
		}
		all.list = append(all.list, p)
	}
	for i, h := range hosts {
		if err := all.await(ctx, in, s, h, all.list[i]); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", h.Name, err), all.close())
		}
	}
	return all, nil
}

// await waits until a server answers.
func (all *servers) await(ctx context.Context, in inside, s *site, h topology.Node, p *process) error {
	for {
		listens := false
		if err := in(h.ID, func() (err error) { listens, err = listening(all.work.port()); return err }); err != nil {
			return err
		}
		if listens && all.work.ready(s, h) {
			return nil
		}
		select {
		case <-p.Ended():
			return fmt.Errorf("the server %s has ended (%v); it printed %.300q", p.name, p.Wait(), p.out)
		case <-ctx.Done():
			return fmt.Errorf("the server %s does not listen (%w); it printed %.300q", p.name, ctx.Err(), p.out)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// listening reports whether a program listens at a TCP port of the calling thread's namespace.
// It opens no connection, which some servers would take for their client.
func listening(port uint16) (bool, error) {
	for _, family := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile("/proc/thread-self/net/" + family)
		if err != nil && !(family == "tcp6" && errors.Is(err, os.ErrNotExist)) {
			return false, err
		}
		if listens(string(b), port) {
			return true, nil
		}
	}
	return false, nil
}

// listens looks for a port in the kernel's table of sockets. State 0A is LISTEN.
func listens(table string, port uint16) bool {
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) > 3 && strings.HasSuffix(fields[1], suffix) && fields[3] == "0A" {
			return true
		}
	}
	return false
}

// close ends the servers.
func (all *servers) close() (err error) {
	for _, p := range all.list {
		err = errors.Join(err, p.Signal(all.work.stop()))
	}
	for _, p := range all.list {
		err = errors.Join(err, p.end())
	}
	return err
}

// play runs the clients of all hosts, each with the server at to[host]. They begin together. The
// processors' idle time is there of clients that fail, too.
func play(ctx context.Context, in inside, s *site, w work, hosts []topology.Node, to []topology.NodeID, limit time.Duration) (r run, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.idle = -1
	g, err := newGathered()
	if err != nil {
		return r, err
	}
	defer func() { // when one has failed the others are of no use
		for _, p := range g.all {
			err = errors.Join(err, p.Kill())
		}
		err = errors.Join(err, g.close())
	}()
	for i, h := range hosts {
		err := in(h.ID, func() error {
			c, until, err := w.client(s, h, hosts[to[i]].Addr)
			if err != nil {
				return err
			}
			return g.start(c, until)
		})
		if err != nil {
			return r, fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	before := testbed.ReadCPU()
	begin, err := g.release(ctx)
	if err != nil {
		return r, err
	}
	type end struct {
		took time.Duration
		err  error
	}
	ends := make([]chan end, len(hosts))
	for i, p := range g.all {
		ends[i] = make(chan end, 1)
		go func() {
			took, err := p.await(ctx, begin)
			ends[i] <- end{took, err}
		}()
	}
	var results []end
	for _, e := range ends {
		results = append(results, <-e)
	}
	r.idle = testbed.IdlePercent(before, testbed.ReadCPU())
	for i, h := range hosts {
		err := results[i].err
		var p99 float64
		if err == nil {
			p99, err = w.read(s, h, g.all[i].out.String())
		}
		if err != nil {
			return r, fmt.Errorf("%s with the server at %s: %w", h.Name, hosts[to[i]].Name, err)
		}
		r.clients = append(r.clients, results[i].took.Seconds())
		if p99 > 0 {
			r.p99 = append(r.p99, p99)
		}
	}
	return r, nil
}
