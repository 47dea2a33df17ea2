package failover

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"weft/bench/testbed"
	"weft/topology"
)

const (
	transferPort = 5002
	// stuckAfter is how long a transfer may move nothing. A silent failure is over in a
	// tenth of a second, and timeouts that double from 20 ms reach this only if something
	// does not work.
	stuckAfter = 30 * time.Second
)

// afterFailure is the pause before the transfer after one that has failed.
const afterFailure = 100 * time.Millisecond

// transfers sends one transfer after the other from each host to its receiver, each over
// a connection of its own, and compares the hashes of both ends. A transfer is 8 bytes of
// length, the data and its SHA-256. The receiver sends its own SHA-256 back.
type transfers struct {
	done, bytes, slowest   atomic.Int64
	corrupted, stuck, lost atomic.Int64
	senders, work          sync.WaitGroup

	mu      sync.Mutex
	first   error
	open    map[io.Closer]bool // listeners, and what they have accepted
	stopped bool
}

var errCorrupted = errors.New("both ends have different hashes")

// startTransfers listens at all hosts, and sends until ctx is done; transfers
// under way then are finished.
func startTransfers(ctx context.Context, hosts []testbed.Host, to []topology.NodeID, most int, seed uint64) (*transfers, error) {
	t := &transfers{open: make(map[io.Closer]bool)}
	for _, h := range hosts {
		l, err := h.Listen("tcp", fmt.Sprintf("%s:%d", h.Address, transferPort))
		if err != nil {
			t.close()
			return nil, err
		}
		t.keep(l)
		t.work.Go(func() { t.serve(l) })
	}
	for i, j := range to {
		t.senders.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for ctx.Err() == nil && !t.isStopped() {
				err := t.send(hosts[i], hosts[j].Address, 1+rng.IntN(most), rng.Uint64())
				if t.count(err); err != nil {
					time.Sleep(afterFailure)
				}
			}
		})
	}
	return t, nil
}

func (t *transfers) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		t.keep(c)
		t.work.Go(func() {
			defer t.drop(c)
			// The sender tells what went wrong, and is told by the answer.
			receiveTransfer(c)
		})
	}
}

// send makes one transfer. The data are a stream of random numbers.
func (t *transfers) send(h testbed.Host, address string, n int, seed uint64) error {
	ctx, cancel := context.WithTimeout(context.Background(), stuckAfter)
	defer cancel()
	start := time.Now()
	c, err := h.DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", address, transferPort))
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	defer c.Close()
	if err := sendTransfer(c, n, seed); err != nil {
		return fmt.Errorf("%d bytes to %s: %w", n, address, err)
	}
	t.bytes.Add(int64(n))
	took := int64(time.Since(start))
	for old := t.slowest.Load(); took > old && !t.slowest.CompareAndSwap(old, took); old = t.slowest.Load() {
	}
	return nil
}

// sendTransfer sends n bytes made from the seed and compares the hashes.
func sendTransfer(c net.Conn, n int, seed uint64) error {
	head := binary.BigEndian.AppendUint64(nil, uint64(n))
	sum := sha256.New()
	source := rand.NewChaCha8([32]byte(append(binary.BigEndian.AppendUint64(head, seed), make([]byte, 16)...)))
	if err := write(c, head); err != nil {
		return err
	}
	buf := make([]byte, 16<<10)
	for left := n; left > 0; {
		b := buf[:min(left, len(buf))]
		source.Read(b) // it never fails
		sum.Write(b)
		if err := write(c, b); err != nil {
			return err
		}
		left -= len(b)
	}
	own := sum.Sum(nil)
	if err := write(c, own); err != nil {
		return err
	}
	answer := make([]byte, sha256.Size)
	c.SetReadDeadline(time.Now().Add(stuckAfter))
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	if !bytes.Equal(own, answer) {
		return errCorrupted
	}
	return nil
}

func write(c net.Conn, b []byte) error {
	c.SetWriteDeadline(time.Now().Add(stuckAfter))
	_, err := c.Write(b)
	return err
}

// receiveTransfer takes what sendTransfer sends and answers with its own hash,
// even if the sender's is another.
func receiveTransfer(c net.Conn) error {
	head := make([]byte, 8)
	if err := readFull(c, head); err != nil {
		return err
	}
	sum := sha256.New()
	if err := hashBytes(c, sum, binary.BigEndian.Uint64(head)); err != nil {
		return err
	}
	claimed := make([]byte, sha256.Size)
	if err := readFull(c, claimed); err != nil {
		return err
	}
	own := sum.Sum(nil)
	if err := write(c, own); err != nil {
		return err
	}
	if !bytes.Equal(own, claimed) {
		return errCorrupted
	}
	return nil
}

func hashBytes(c net.Conn, sum hash.Hash, n uint64) error {
	buf := make([]byte, 16<<10)
	for n > 0 {
		b := buf[:min(n, uint64(len(buf)))]
		if err := readFull(c, b); err != nil {
			return err
		}
		sum.Write(b)
		n -= uint64(len(b))
	}
	return nil
}

// readFull reads all of b, within stuckAfter.
func readFull(c net.Conn, b []byte) error {
	c.SetReadDeadline(time.Now().Add(stuckAfter))
	_, err := io.ReadFull(c, b)
	return err
}

// count counts how a transfer ended.
func (t *transfers) count(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var timeout net.Error
	switch {
	case err == nil:
		t.done.Add(1)
		return
	case t.stopped:
		return // it was told to
	case errors.Is(err, errCorrupted):
		t.corrupted.Add(1)
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		t.stuck.Add(1)
	default:
		t.lost.Add(1)
	}
	if t.first == nil {
		t.first = err
	}
}

func (t *transfers) isStopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

func (t *transfers) keep(c io.Closer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		c.Close()
		return
	}
	t.open[c] = true
}

func (t *transfers) drop(c io.Closer) {
	c.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, c)
}

// finish waits for the transfers under way to end, of which none is stuck for
// longer than stuckAfter, and ends the rest.
func (t *transfers) finish() {
	t.senders.Wait()
	t.close()
}

// close ends everything at once.
func (t *transfers) close() {
	t.mu.Lock()
	t.stopped = true
	for c := range t.open {
		c.Close()
	}
	t.mu.Unlock()
	t.senders.Wait()
	t.work.Wait()
}
