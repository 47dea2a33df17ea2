package permutation

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"weft/bench/testbed"
	"weft/topology"
)

// Load says how long to run.
type Load struct {
	Warmup   time.Duration // before the measurement
	Duration time.Duration // of the measurement
	// Progress, if not nil, is called with how much of both has passed.
	Progress func(elapsed, total time.Duration)
}

// Result is what a run measured.
type Result struct {
	Mbit        []float64 // goodput of each stream, Mbit/s
	RTTMicros   []float64 // of small requests, µs
	Counters    testbed.Counters
	Elapsed     time.Duration // that counters and goodput cover
	IdlePercent float64       // of the machine's processors; -1 if not known
}

const (
	port         = 5001
	requestBytes = 64
	requestEvery = 20 * time.Millisecond
	connectLimit = 10 * time.Second
)

// headBytes begin a connection: a byte that says what it is for, and the number of its stream.
const headBytes = 5

const (
	kindBulk    = 'B'
	kindRequest = 'R'
)

// Run sends a stream from each host i to host to[i] and measures it.
func Run(ctx context.Context, s *testbed.Session, to []topology.NodeID, load Load) (Result, error) {
	return RunStreams(ctx, s, Streams(to), load)
}

// RunStreams sends streams, with small requests beside each, and measures them.
func RunStreams(ctx context.Context, s *testbed.Session, streams []Stream, load Load) (Result, error) {
	r := &runner{hosts: s.Hosts, received: make([]atomic.Int64, len(streams))}
	defer r.stop()
	if err := r.listen(); err != nil {
		return Result{}, err
	}
	if err := r.connect(ctx, streams); err != nil {
		return Result{}, err
	}
	total := load.Warmup + load.Duration
	if err := sleep(ctx, load.Warmup, func(d time.Duration) { load.report(d, total) }); err != nil {
		return Result{}, err
	}
	before, err := r.measure(s)
	if err != nil {
		return Result{}, err
	}
	r.timing.Store(true)
	if err := sleep(ctx, load.Duration, func(d time.Duration) { load.report(load.Warmup+d, total) }); err != nil {
		return Result{}, err
	}
	r.timing.Store(false)
	after, err := r.measure(s)
	if err != nil {
		return Result{}, err
	}
	return r.result(before, after), nil
}

func (l Load) report(elapsed, total time.Duration) {
	if l.Progress != nil {
		l.Progress(elapsed, total)
	}
}

func sleep(ctx context.Context, d time.Duration, report func(time.Duration)) error {
	start := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(d)
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return nil
		case <-tick.C:
			report(time.Since(start))
		}
	}
}

type runner struct {
	hosts    []testbed.Host
	received []atomic.Int64 // bulk bytes, by stream
	timing   atomic.Bool    // requests count
	work     sync.WaitGroup
	open     testbed.Closers

	mu   sync.Mutex
	rtts []float64
}

func (r *runner) stop() {
	r.open.Close()
	r.work.Wait()
}

func (r *runner) listen() error {
	for _, h := range r.hosts {
		l, err := h.Listen("tcp", at(h))
		if err != nil {
			return err
		}
		r.open.Keep(l)
		r.work.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				r.open.Keep(c)
				r.work.Go(func() { r.serve(c) })
			}
		})
	}
	return nil
}

// at is where a host listens.
func at(h testbed.Host) string { return net.JoinHostPort(h.Address, strconv.Itoa(port)) }

func (r *runner) serve(c net.Conn) {
	buf := make([]byte, 64<<10)
	if _, err := io.ReadFull(c, buf[:headBytes]); err != nil {
		return
	}
	stream := binary.BigEndian.Uint32(buf[1:])
	if int64(stream) >= int64(len(r.received)) {
		return // it is none of ours
	}
	received := &r.received[stream]
	if buf[0] == kindRequest {
		for {
			if _, err := io.ReadFull(c, buf[:requestBytes]); err != nil {
				return
			}
			if _, err := c.Write(buf[:requestBytes]); err != nil {
				return
			}
		}
	}
	for {
		n, err := c.Read(buf)
		received.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// connect opens both connections of every stream, then starts all.
func (r *runner) connect(ctx context.Context, streams []Stream) error {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	errs := make([]error, len(streams))
	bulk, small := make([]net.Conn, len(streams)), make([]net.Conn, len(streams))
	var dials sync.WaitGroup
	for i, s := range streams {
		dials.Go(func() {
			var err1, err2 error
			bulk[i], err1 = r.dial(ctx, s, i, kindBulk)
			small[i], err2 = r.dial(ctx, s, i, kindRequest)
			errs[i] = errors.Join(err1, err2)
		})
	}
	dials.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i := range streams {
		r.work.Go(func() { stream(bulk[i]) })
		r.work.Go(func() { r.request(small[i]) })
	}
	return nil
}

func (r *runner) dial(ctx context.Context, s Stream, number int, kind byte) (net.Conn, error) {
	c, err := r.hosts[s.From].DialContext(ctx, "tcp", at(r.hosts[s.To]))
	if err != nil {
		return nil, err
	}
	r.open.Keep(c)
	_, err = c.Write(binary.BigEndian.AppendUint32([]byte{kind}, uint32(number)))
	return c, err
}

func stream(c net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		if _, err := c.Write(buf); err != nil {
			return
		}
	}
}

// request sends small requests, one after the other and not too often.
func (r *runner) request(c net.Conn) {
	buf := make([]byte, requestBytes)
	for {
		start := time.Now()
		timed := r.timing.Load()
		if _, err := c.Write(buf); err != nil {
			return
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			return
		}
		rtt := time.Since(start)
		if timed && r.timing.Load() {
			r.mu.Lock()
			r.rtts = append(r.rtts, float64(rtt.Nanoseconds())/1e3)
			r.mu.Unlock()
		}
		time.Sleep(requestEvery - rtt)
	}
}

// reading is everything that is counted, at one moment.
type reading struct {
	at       time.Time
	received []int64
	counters testbed.Counters
	cpu      testbed.CPU
}

func (r *runner) measure(s *testbed.Session) (m reading, err error) {
	if m.counters, err = s.Counters(); err != nil {
		return m, err
	}
	m.cpu = testbed.ReadCPU()
	m.at = time.Now()
	for i := range r.received {
		m.received = append(m.received, r.received[i].Load())
	}
	return m, nil
}

func (r *runner) result(a, b reading) Result {
	elapsed := b.at.Sub(a.at)
	res := Result{
		Elapsed:     elapsed,
		Counters:    b.counters,
		IdlePercent: testbed.IdlePercent(a.cpu, b.cpu),
		Mbit:        make([]float64, len(r.received)),
	}
	for i := range res.Mbit {
		res.Mbit[i] = float64(b.received[i]-a.received[i]) * 8 / elapsed.Seconds() / 1e6
	}
	subtract(&res.Counters, a.counters, elapsed)
	r.mu.Lock()
	res.RTTMicros = append(res.RTTMicros, r.rtts...)
	r.mu.Unlock()
	return res
}

// subtract leaves what has been counted since base was read, elapsed before.
func subtract(c *testbed.Counters, base testbed.Counters, elapsed time.Duration) {
	c.Retransmits -= base.Retransmits
	c.OutOfOrderBefore -= base.OutOfOrderBefore
	c.OutOfOrderAfter -= base.OutOfOrderAfter
	for i := range c.Links {
		l, b := &c.Links[i], base.Links[i]
		l.Up = within(elapsed, l.Up-b.Up, l.UpAt.Sub(b.UpAt))
		l.Down = within(elapsed, l.Down-b.Down, l.DownAt.Sub(b.DownAt))
	}
}

// within is how many bytes pass in elapsed at the rate of bytes in took. A port that is
// read late the second time has had longer to count than the others; took is 0 where all
// are read at one moment.
func within(elapsed time.Duration, bytes uint64, took time.Duration) uint64 {
	if took <= 0 {
		return bytes
	}
	return uint64(math.Round(float64(bytes) * elapsed.Seconds() / took.Seconds()))
}
