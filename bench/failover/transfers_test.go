package failover

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"weft/bench/testbed"
	"weft/topology"
)

// transfer lets both ends run over a pipe, of which the receiver's end is what
// change makes of it.
func transfer(t *testing.T, n int, change func(net.Conn) net.Conn) (sent, received error) {
	t.Helper()
	a, b := net.Pipe()
	done := make(chan error)
	go func() {
		c := change(b)
		err := receiveTransfer(c)
		c.Close()
		done <- err
	}()
	sent = sendTransfer(a, n, 7)
	a.Close()
	return sent, <-done
}

func TestTransfer_ofAllSizes(t *testing.T) {
	for _, n := range []int{1, 15, 16 << 10, 16<<10 + 1, 100_000} {
		sent, received := transfer(t, n, func(c net.Conn) net.Conn { return c })
		if sent != nil || received != nil {
			t.Errorf("%d bytes: sender %v, receiver %v", n, sent, received)
		}
	}
}

// flipping changes one bit of what is read, the n-th byte's.
type flipping struct {
	net.Conn
	n int
}

func (f *flipping) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if f.n >= 0 && f.n < n {
		b[f.n] ^= 1
	}
	f.n -= n
	return n, err
}

func TestTransfer_noticesOneBit(t *testing.T) {
	for _, at := range []int{8, 5000, 99_999 + 8} { // of the data
		sent, received := transfer(t, 100_000, func(c net.Conn) net.Conn { return &flipping{c, at} })
		if !errors.Is(sent, errCorrupted) || !errors.Is(received, errCorrupted) {
			t.Errorf("byte %d: sender %v, receiver %v", at, sent, received)
		}
	}
}

func TestTransfers_countHowTheyEnd(t *testing.T) {
	x := &transfers{}
	for _, err := range []error{nil, errCorrupted, os.ErrDeadlineExceeded, context.DeadlineExceeded, net.ErrClosed} {
		x.count(err)
	}
	if x.done.Load() != 1 || x.corrupted.Load() != 1 || x.stuck.Load() != 2 || x.lost.Load() != 1 {
		t.Errorf("%d done, %d corrupted, %d stuck, %d lost", x.done.Load(), x.corrupted.Load(), x.stuck.Load(), x.lost.Load())
	}
	if !errors.Is(x.first, errCorrupted) {
		t.Errorf("first: %v", x.first)
	}
	x.stopped = true
	x.count(net.ErrClosed)
	if x.lost.Load() != 1 {
		t.Error("one that was told to end counts as lost")
	}
}

func inMemory(t *testing.T) (*testbed.Session, *topology.Topology) {
	t.Helper()
	whole := parse(t, "fat-tree:k=4")
	rows, err := testbed.Select([]string{"drb"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := testbed.InMemory(testbed.Config{Topology: whole, RateMbit: 8, Seed: 1}).Start(t.Context(), rows[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, whole
}

func TestTransfers_overTheStack(t *testing.T) {
	s, whole := inMemory(t)
	to, _ := permute(whole, 1)
	ctx, cancel := context.WithCancel(t.Context())
	x, err := startTransfers(ctx, s.Hosts, to, 20_000, 1)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); x.done.Load() < 32 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	x.finish()
	if x.done.Load() < 32 || x.corrupted.Load()+x.stuck.Load()+x.lost.Load() != 0 {
		t.Errorf("%d done, %d corrupted, %d stuck, %d lost: %v", x.done.Load(), x.corrupted.Load(), x.stuck.Load(), x.lost.Load(), x.first)
	}
	if len(x.open) > len(s.Hosts) {
		t.Errorf("%d sockets are remembered, of %d listeners", len(x.open), len(s.Hosts))
	}
}
