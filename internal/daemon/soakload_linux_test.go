package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"
)

// soakLoad is what programs do all day: it keeps connections open, uses now this one
// and now that one, and opens short ones. Whatever it sends comes back and is compared.
// The same load goes over the kernel's sockets and those of an embedded Host.
type soakLoad struct {
	dial func(ctx context.Context, to string) (net.Conn, error)
	to   []string // echo servers, in turn
	held int      // connections that stay open
	// away reports whether there may have been no path of late; nil: there always is.
	away func() bool

	mu     sync.Mutex
	counts soakCounts
}

// soakCounts say what has become of connections.
type soakCounts struct {
	Open      int // now
	Short     int // were opened, used and closed
	Exchanges int
	Bytes     int64         // there and back
	Renewed   int           // were held, closed, and opened again
	Lost      int           // ended, or never began, where there was a path
	Stuck     int           // did not get their bytes within soakPatience
	Corrupted int           // got other bytes
	Redialled int           // tries without a path
	Slowest   time.Duration // exchange
	SlowestIs string        // when and between whom
	First     string        // what failed first
}

// count changes the counters.
func (l *soakLoad) count(f func(c *soakCounts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.counts)
}

// counted returns them.
func (l *soakLoad) counted() soakCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

const (
	// soakPatience is for an exchange: many times what any event lasts.
	soakPatience = 30 * time.Second
	soakWorkers  = 8                      // that use what is held
	soakPause    = 120 * time.Millisecond // of a worker between exchanges
	soakShorts   = 4                      // workers that open short connections
	soakOpening  = 400                    // connections a second, in the beginning
)

// run loads until ctx ends. ready is called when all connections are open.
func (l *soakLoad) run(ctx context.Context, seed uint64, ready func()) {
	var wg sync.WaitGroup
	conns := make([]net.Conn, l.held)
	for i := range conns {
		if conns[i] = l.open(ctx, i); conns[i] == nil && ctx.Err() != nil {
			break
		}
		time.Sleep(time.Second / soakOpening)
	}
	ready()
	for w := range soakWorkers {
		wg.Go(func() { l.use(ctx, rand.New(rand.NewPCG(seed, uint64(w))), conns, w) })
	}
	for w := range soakShorts {
		wg.Go(func() { l.open1(ctx, rand.New(rand.NewPCG(seed, 100+uint64(w)))) })
	}
	wg.Wait()
	for _, c := range conns {
		if c != nil {
			c.Close()
		}
	}
}

// use exchanges bytes over the connections of one worker.
func (l *soakLoad) use(ctx context.Context, random *rand.Rand, conns []net.Conn, worker int) {
	for ctx.Err() == nil {
		if i := random.IntN(max(len(conns), 1))/soakWorkers*soakWorkers + worker; i < len(conns) {
			again := random.IntN(50) == 0
			if conns[i] != nil && (!l.exchange(ctx, conns[i], random, 1+random.IntN(4000)) || again) {
				conns[i].Close()
				l.count(func(c *soakCounts) { c.Open--; c.Renewed++ })
				conns[i] = nil
			}
			if conns[i] == nil {
				conns[i] = l.open(ctx, i)
			}
		}
		wait(ctx, soakPause)
	}
}

// open1 opens short connections, one after the other.
func (l *soakLoad) open1(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		if c := l.open(ctx, random.Int()); c != nil {
			if l.exchange(ctx, c, random, 1+random.IntN(1<<(4+random.IntN(13)))) {
				l.count(func(c *soakCounts) { c.Short++ })
			}
			c.Close()
			l.count(func(c *soakCounts) { c.Open-- })
		}
		wait(ctx, soakPause)
	}
}

// open dials; nil if that fails, which has been counted.
func (l *soakLoad) open(ctx context.Context, i int) net.Conn {
	to := l.to[i%len(l.to)]
	for try := 0; ctx.Err() == nil; try++ {
		dialling, cancel := context.WithTimeout(ctx, soakPatience)
		c, err := l.dial(dialling, to)
		cancel()
		switch {
		case err == nil:
			l.count(func(c *soakCounts) { c.Open++ })
			return c
		case ctx.Err() != nil:
			return nil
		case l.away != nil && l.away() && try < 20 && unreachable(err):
			l.count(func(c *soakCounts) { c.Redialled++ })
			wait(ctx, 100*time.Millisecond)
		default:
			l.fail(&l.counts.Lost, "dial %s: %w", to, err)
			return nil
		}
	}
	return nil
}

// unreachable is what a kernel says that has no route or no address at the moment.
func unreachable(err error) bool {
	return errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.ENETDOWN)
}

// exchange sends so many bytes, and wants them back.
func (l *soakLoad) exchange(ctx context.Context, c net.Conn, random *rand.Rand, size int) bool {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(random.Uint32())
	}
	want, got := make([]byte, size), make([]byte, size)
	rand.NewChaCha8(seed).Read(want)
	began := time.Now()
	c.SetDeadline(began.Add(soakPatience))
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(want)
		sent <- err
	}()
	_, err := io.ReadFull(c, got)
	if err != nil {
		c.SetDeadline(began) // or who writes would go on
	}
	err = errors.Join(err, <-sent)
	took := time.Since(began)
	if ctx.Err() != nil {
		return false
	}
	switch {
	case isTimeout(err):
		l.fail(&l.counts.Stuck, "%v to %v, %d bytes: after %v: %w", c.LocalAddr(), c.RemoteAddr(), size, took, err)
	case err != nil:
		l.fail(&l.counts.Lost, "%v to %v, %d bytes: after %v: %w", c.LocalAddr(), c.RemoteAddr(), size, took, err)
	case !bytes.Equal(got, want):
		l.fail(&l.counts.Corrupted, "%v to %v, %d bytes: others came back", c.LocalAddr(), c.RemoteAddr(), size)
	default:
		l.count(func(n *soakCounts) {
			n.Exchanges++
			n.Bytes += int64(2 * size)
			if took > n.Slowest {
				n.Slowest, n.SlowestIs = took, fmt.Sprintf("%s %v to %v", began.Format("15:04:05"), c.LocalAddr(), c.RemoteAddr())
			}
		})
		return true
	}
	return false
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// fail counts by one of the counters.
func (l *soakLoad) fail(counter *int, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*counter++
	if l.counts.First == "" {
		l.counts.First = time.Now().Format("15:04:05.000 ") + fmt.Errorf(format, args...).Error()
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// echo sends back what comes, on every connection, until the listener is closed.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			b := make([]byte, 4<<10)
			for {
				n, err := c.Read(b)
				if n > 0 {
					if _, err := c.Write(b[:n]); err != nil {
						return
					}
				}
				if err != nil {
					return
				}
			}
		}()
	}
}
