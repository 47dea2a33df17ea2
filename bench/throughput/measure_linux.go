package throughput

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// run is one round of one case: the processes of both ends.
type run struct {
	sender, receiver *process
	helpers          []*process
}

// measure runs a case once.
func (b *bench) measure(ctx context.Context, c Case) (s sample, err error) {
	if c.around != nil {
		undo, err2 := c.around(b)
		if err2 != nil {
			return s, err2
		}
		defer func() { err = errors.Join(err, undo()) }()
	}
	var r run
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := b.connect(ctx, c, &r); err != nil {
		return s, err
	}
	requests, err := b.requests(ctx, &r, false)
	if err != nil {
		return s, err
	}
	anew, err := b.anew(ctx, &r)
	if err != nil {
		return s, err
	}
	if _, err := r.sender.ask(ctx, cmdStart); err != nil {
		return s, fmt.Errorf("sender: %w", err)
	}
	if err := sleep(ctx, b.options.Warmup); err != nil {
		return s, err
	}
	givenUp, err := r.carried(ctx)
	if err != nil {
		return s, err
	}
	before, err := b.count(ctx, &r)
	if err != nil {
		return s, err
	}
	if err := sleep(ctx, b.options.Duration); err != nil {
		return s, err
	}
	after, err := b.count(ctx, &r)
	if err != nil {
		return s, err
	}
	s = after.since(before)
	beside, err := b.requests(ctx, &r, true)
	if err != nil {
		return s, err
	}
	s.latency, s.anew = append(requests, beside...), anew
	_, since, err := r.plain(ctx)
	if s.plain = since != givenUp; s.plain {
		b.note(fmt.Sprintf("case %s: a daemon gave its carrier up in round %d, so a part of it went plain", c.Name, len(b.rounds[c.key()])+1))
	}
	return s, errors.Join(err, r.finish(ctx))
}

// proofLimit is more than a daemon takes to prove its carrier to a rack, on a busy machine,
// too.
const proofLimit = 10 * time.Second

// carried waits until nobody sends plain any more, and tells how often they have given their
// carriers up before.
func (r *run) carried(ctx context.Context) (givenUp uint64, err error) {
	for deadline := time.Now().Add(proofLimit); ; {
		now, givenUp, err := r.plain(ctx)
		if err != nil || !now {
			return givenUp, err
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("packets go plain after %v: no daemon has proved its carrier", proofLimit)
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// plain reports whether one of the processes sends plain, and how often they all have given up.
func (r *run) plain(ctx context.Context) (now bool, givenUp uint64, err error) {
	for _, p := range r.all() {
		a, err := p.ask(ctx, cmdPlain)
		if err != nil {
			return false, 0, fmt.Errorf("whether packets go plain: %w", err)
		}
		now, givenUp = now || a.Plain, givenUp+a.GivenUp
	}
	return now, givenUp, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connect starts the processes of both ends, the receiver's first.
func (b *bench) connect(ctx context.Context, c Case, r *run) error {
	for _, s := range []site{{b.topology, b.to, b.from, b.scratch}, {b.topology, b.from, b.to, b.scratch}} {
		if c.helper == nil {
			break
		}
		p, err := c.helper(ctx, b, c, s)
		if err != nil {
			return fmt.Errorf("%s: %w", b.topology.Node(s.self).Name, err)
		}
		r.helpers = append(r.helpers, p)
	}
	target, err := b.work(ctx, c, &r.receiver, job{Self: b.to, Peer: b.from})
	if err != nil {
		return fmt.Errorf("receiver: %w", err)
	}
	if _, err = b.work(ctx, c, &r.sender, job{Self: b.from, Peer: b.to, Target: target}); err != nil {
		return fmt.Errorf("sender: %w", err)
	}
	return nil
}

// work starts a Worker, and tells where it listens.
func (b *bench) work(ctx context.Context, c Case, p **process, j job) (address string, err error) {
	j.Case, j.Topology, j.Scratch, j.Connections = c.Name, b.topology.String(), b.scratch, c.connections
	j.Respond = b.options.Latency || b.options.Anew
	j.Profile = b.profile(c, j)
	text, err := json.Marshal(j)
	if err != nil {
		return "", err
	}
	if *p, err = b.start(j.Self, slices.Concat(b.options.Worker, []string{string(text)})); err != nil {
		return "", err
	}
	answer, err := (*p).answer(ctx)
	return answer.Address, err
}

// profile is the file for the profile of a process in the next round of a case; "" for none.
func (b *bench) profile(c Case, j job) string {
	if b.options.Profiles == "" {
		return ""
	}
	name := fmt.Sprintf("%s-%s-%d.pprof", strings.ReplaceAll(c.Name, "/", "-"), b.end(j), len(b.rounds[c.key()])+1)
	if len(b.options.Connections) > 1 {
		name = fmt.Sprintf("%d-%s", c.connections, name)
	}
	return filepath.Join(b.options.Profiles, name)
}

// end says what a Worker is, for the names of files.
func (b *bench) end(j job) string {
	name := "sender"
	if j.Self == b.to {
		name = "receiver"
	}
	if j.Carry {
		name += "-daemon"
	}
	return name
}

// finish ends the stream and checks that what was sent has arrived.
func (r *run) finish(ctx context.Context) error {
	sent, err := r.sender.ask(ctx, cmdFinish)
	if err != nil {
		return fmt.Errorf("sender: %w", err)
	}
	got, err := r.receiver.ask(ctx, cmdFinish)
	if err != nil {
		return fmt.Errorf("receiver: %w", err)
	}
	if sent.Bytes != got.Bytes {
		return fmt.Errorf("%d bytes were sent and %d arrived", sent.Bytes, got.Bytes)
	}
	return nil
}

// stop ends all processes, in the order in which they need each other.
func (r *run) stop() error {
	var all []error
	for _, p := range r.all() {
		all = append(all, p.stop())
	}
	return errors.Join(all...)
}

// all has what runs.
func (r *run) all() []*process {
	all := append([]*process{r.sender, r.receiver}, r.helpers...)
	return slices.DeleteFunc(all, func(p *process) bool { return p == nil })
}

// counts is all that is counted, at one moment.
type counts struct {
	at               time.Time
	cpu              cpuTimes
	others           float64 // processor time of processes that are not ours, seconds
	spines           []spineCount
	receiver, sender report
	processes        report // sums over all of the case
}

func (b *bench) count(ctx context.Context, r *run) (c counts, err error) {
	if c.spines, err = b.countSpines(); err != nil {
		return c, err
	}
	if c.receiver, err = r.receiver.ask(ctx, cmdCount); err != nil {
		return c, fmt.Errorf("receiver: %w", err)
	}
	if c.sender, err = r.sender.ask(ctx, cmdCount); err != nil {
		return c, fmt.Errorf("sender: %w", err)
	}
	all := []report{c.receiver, c.sender}
	for _, p := range r.helpers {
		h, err := p.ask(ctx, cmdCount)
		if err != nil {
			return c, fmt.Errorf("forwarder: %w", err)
		}
		all = append(all, h)
	}
	ours := []int{os.Getpid()}
	for _, h := range all {
		c.processes.Mallocs += h.Mallocs
		c.processes.CPUNanos += h.CPUNanos
		ours = append(ours, h.Children...)
	}
	for _, p := range r.all() {
		ours = append(ours, p.cmd.Process.Pid)
	}
	if c.others, err = otherSeconds(ours); err != nil {
		return c, err
	}
	c.at = time.Now()
	c.cpu, err = readCPU()
	return c, err
}

// since makes a sample of two counts.
func (c counts) since(b counts) (s sample) {
	seconds := c.at.Sub(b.at).Seconds()
	cpu := c.cpu.since(b.cpu)
	bytes := float64(c.receiver.Bytes - b.receiver.Bytes)
	s.gbps = ratio(8*bytes, float64(c.receiver.Nanos-b.receiver.Nanos))
	s.otherCores = max(0, c.others-b.others) / seconds
	s.cores = max(0, cpu.busy/seconds-s.otherCores)
	s.processCores = float64(c.processes.CPUNanos-b.processes.CPUNanos) / 1e9 / seconds
	s.idle, s.steal = cpu.percent(cpu.idle), cpu.percent(cpu.steal)
	s.mallocs = ratio(float64(c.processes.Mallocs-b.processes.Mallocs), bytes/1e6)
	s.retransmits = ratio(float64(c.sender.Retransmits-b.sender.Retransmits), bytes/1e9)
	s.shares = shares(b.spines, c.spines)
	return s
}

// shares are the parts that spines have in the rate between two readings, the largest
// first.
func shares(before, after []spineCount) []float64 {
	part, sum := make([]float64, len(after)), 0.0
	for i := range part {
		part[i] = ratio(after[i].bytes-before[i].bytes, after[i].at.Sub(before[i].at).Seconds())
		sum += part[i]
	}
	for i := range part {
		part[i] = ratio(part[i], sum)
	}
	slices.SortFunc(part, func(a, b float64) int { return cmp.Compare(b, a) })
	return part
}
