package stack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"weft/topology"
)

// superHosts are two Hosts on one cable; nobody needs to encapsulate there.
func superHosts(t *testing.T, policy string) (a, b *Host, devA, devB *superMemory) {
	t.Helper()
	devA, devB = superPair(1500)
	for i, dev := range []*superMemory{devA, devB} {
		h, err := New(Config{Address: fatTree.EmbeddedAddr(topology.NodeID(15 * i)), Topology: fatTree, Device: encapsulating{GatewayDevice: dev}, Policy: policy, Simulation: Simulation{Seed: 1}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		if i == 0 {
			a = h
		} else {
			b = h
		}
	}
	return a, b, devA, devB
}

// transferHashed sends random bytes and compares hashes.
func transferHashed(t *testing.T, a, b *Host, size int, during func(sent int)) {
	t.Helper()
	from, to := connect(t, a, b)
	defer from.Close()
	defer to.Close()
	deadline := time.Now().Add(30 * time.Second)
	from.SetDeadline(deadline)
	to.SetDeadline(deadline)
	// Handed over by a channel: a FIN that goes through the kernel orders
	// nothing for Go.
	sum := make(chan []byte, 1)
	go func() {
		sent := sha256.New()
		defer func() { sum <- sent.Sum(nil) }()
		rng := rand.NewChaCha8([32]byte{1})
		buf := make([]byte, 100_000)
		for n := 0; n < size; {
			rng.Read(buf)
			k := min(len(buf), size-n)
			if _, err := from.Write(buf[:k]); err != nil {
				t.Error(err)
				break
			}
			sent.Write(buf[:k])
			n += k
			during(n)
		}
		from.(interface{ CloseWrite() error }).CloseWrite()
	}()
	got := sha256.New()
	n, err := io.Copy(got, to)
	if err != nil || n != int64(size) || !bytes.Equal(<-sum, got.Sum(nil)) {
		t.Fatalf("%d bytes, %v", n, err)
	}
}

func TestHost_superSegmentsEndToEnd(t *testing.T) {
	for _, policy := range []string{"presto", "ecmp"} {
		a, b, dev, _ := superHosts(t, policy)
		transferHashed(t, a, b, 20e6, func(int) {})
		out, in := a.Stats(), b.Stats()
		if dev.Supers.Load() < 200 || out.Egress.Supers < 200 || in.Ingress.Supers < 200 {
			t.Errorf("%s: %d super-segments; %+v, %+v", policy, dev.Supers.Load(), out.Egress, in.Ingress)
		}
		if policy == "presto" && in.Resequencer.FlowsNumbered == 0 {
			t.Errorf("the receiver does not believe the numbers: %+v", in.Resequencer)
		}
	}
}

// The kernel refuses super-segments from some moment on: what is refused is
// TCP's to send again, and the connection lives on.
func TestHost_survivesOffloadsThatBreak(t *testing.T) {
	a, b, dev, _ := superHosts(t, "presto")
	var refused atomic.Bool
	transferHashed(t, a, b, 10e6, func(sent int) {
		if sent > 3e6 && !refused.Swap(true) {
			dev.Refuses.Store(true)
		}
	})
	if out := a.Stats().Egress; dev.MaxSuper() != 0 || out.DeviceDrops == 0 || out.Packets < 3000 {
		t.Errorf("%+v", out)
	}
	transferHashed(t, a, b, 1e6, func(int) {}) // a connection made since
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := a.DialContext(ctxWithTimeout(t), "tcp", b.Address().String()+":1"); err == nil {
		t.Error("a closed Host answers")
	}
}

func ctxWithTimeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
