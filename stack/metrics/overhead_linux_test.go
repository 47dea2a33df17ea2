package metrics

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weft/link"
	"weft/stack"
	"weft/topology"
)

// through is an end of a cable in whose middle are all bouncing switches of a fabric: it takes
// outer headers off, and brings boomerangs home.
type through struct {
	*link.Memory              // this host's end
	back         *link.Memory // the other's: what is written there comes home
	own          [4]byte
	mu           sync.Mutex
	there, home  [][]byte
}

func (d *through) Write(bufs [][]byte, offset int) (int, error) {
	const outer, protocol, dst = 20, 9, 16
	d.mu.Lock()
	defer d.mu.Unlock()
	d.there, d.home = d.there[:0], d.home[:0]
	for _, b := range bufs {
		if p := b[offset:]; len(p) > 2*outer && p[protocol] == 4 {
			b = b[outer:]
		}
		if p := b[offset:]; [4]byte(p[dst:]) == d.own {
			d.home = append(d.home, b)
		} else {
			d.there = append(d.there, b)
		}
	}
	if len(d.home) > 0 {
		d.back.Write(d.home, offset)
	}
	if _, err := d.Memory.Write(d.there, offset); err != nil {
		return 0, err
	}
	return len(bufs), nil
}

// bed is two Hosts in different racks of a fabric that costs nothing, with a connection.
type bed struct {
	hosts    [2]*stack.Host
	from, to net.Conn
}

func newBed(b *testing.B, c stack.Config) (r bed) {
	b.Helper()
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		b.Fatal(err)
	}
	var ends [2]*link.Memory
	ends[0], ends[1] = link.NewPair(1500, 1<<15)
	c.Topology, c.Policy = top, "drb"
	for i, name := range []string{"h0.0.2", "h3.1.3"} {
		n, err := top.Lookup(name)
		if err != nil {
			b.Fatal(err)
		}
		c.Address = top.EmbeddedAddr(n.ID)
		c.Device = &through{Memory: ends[i], back: ends[1-i], own: c.Address.As4()}
		if r.hosts[i], err = stack.New(c); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { r.hosts[i].Close() })
	}
	l, err := r.hosts[1].Listen("tcp", ":80")
	if err != nil {
		b.Fatal(err)
	}
	if r.from, err = r.hosts[0].Dial("tcp", netip.AddrPortFrom(r.hosts[1].Address(), 80).String()); err != nil {
		b.Fatal(err)
	}
	if r.to, err = l.Accept(); err != nil {
		b.Fatal(err)
	}
	return r
}

// cost is of transfers.
type cost struct{ elapsed, processor time.Duration }

// transfer returns what some bytes cost, with what else the process does meanwhile.
func (r *bed) transfer(b *testing.B, bytes []byte) cost {
	start, used := time.Now(), processorTime(b)
	go r.from.Write(bytes)
	if _, err := io.CopyN(io.Discard, r.to, int64(len(bytes))); err != nil {
		b.Fatal(err)
	}
	return cost{time.Since(start), processorTime(b) - used}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (c *cost) add(o cost) { c.elapsed, c.processor = c.elapsed+o.elapsed, c.processor+o.processor }

// watch asks for all that there is to know at once, and then once a second, until stop is closed.
func (r *bed) watch(b *testing.B, stop <-chan struct{}) {
	reg := prometheus.NewRegistry()
	for i, h := range r.hosts {
		prometheus.WrapRegistererWith(prometheus.Labels{"host": string(rune('a' + i))}, reg).MustRegister(NewCollector(h))
	}
	for {
		if _, err := reg.Gather(); err != nil {
			b.Error(err)
		}
		if _, err := r.hosts[0].ConnStats(r.from); err != nil {
			b.Error(err)
		}
		select {
		case <-stop:
			return
		case <-time.After(time.Second):
		}
	}
}

// BenchmarkOverhead sends 64 MB over a Host that nobody watches, and over one with a log that is
// scraped in each transfer and once a second, fifteen times as often as usual or more, in turns; and the same with counts of paths by
// connection. %_cpu is the processor time of the second as a part of that of the first. The other
// Host of each turn still probes its paths.
func BenchmarkOverhead(b *testing.B) {
	for _, paths := range []bool{false, true} {
		b.Run(fmt.Sprintf("ConnPaths=%t", paths), func(b *testing.B) { overhead(b, paths) })
	}
}

func overhead(b *testing.B, paths bool) {
	live := stack.Config{Liveness: &stack.Liveness{}}
	watched := live
	watched.ConnPaths, watched.Log = paths, slog.New(slog.NewJSONHandler(io.Discard, nil))
	off, on := newBed(b, live), newBed(b, watched)
	bytes := make([]byte, 64<<20)
	off.transfer(b, bytes)
	on.transfer(b, bytes)
	var without, with cost
	turn := func(scraped bool) {
		if !scraped {
			without.add(off.transfer(b, bytes))
			return
		}
		stop := make(chan struct{})
		var scrapes sync.WaitGroup
		scrapes.Go(func() { on.watch(b, stop) })
		with.add(on.transfer(b, bytes))
		close(stop)
		scrapes.Wait()
	}
	for i := 0; b.Loop(); i++ {
		turn(i%2 == 0)
		turn(i%2 == 1)
	}
	mb := float64(b.N*len(bytes)) / 1e6
	b.ReportMetric(mb/without.elapsed.Seconds(), "MB/s_off")
	b.ReportMetric(mb/with.elapsed.Seconds(), "MB/s_on")
	b.ReportMetric(1000*without.processor.Seconds()/mb, "cpu-ms/MB_off")
	b.ReportMetric(1000*with.processor.Seconds()/mb, "cpu-ms/MB_on")
	b.ReportMetric(100*with.processor.Seconds()/without.processor.Seconds(), "%_cpu")
}
