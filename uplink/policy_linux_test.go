package uplink

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"weft/encap"
	"weft/internal/slowtest"
	"weft/stack"
)

// sumOf adds up shares.
func sumOf(all map[netip.Addr]uint64) (sum uint64) {
	for _, n := range all {
		sum += n
	}
	return sum
}

// The uplink's program carries out the Host's own policy. A flow of another policy
// leaves wrapped, and the program lets it pass as it is.
func TestNewHost_flowsOfAnotherPolicyPassTheProgram(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t)
	for _, carrier := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		t.Run(carrier.String(), func(t *testing.T) {
			use := func(c *stack.Config) { c.Carrier = carrier }
			d, sender := n.open(t, near, "presto", use)
			_, receiver := n.open(t, far, "presto", use)
			if !d.Encapsulates() {
				t.Fatalf("fallback: %s", d.Offloads())
			}
			const size = 20 << 20
			for _, c := range []struct {
				policy string
				paths  int
			}{{"drb", 4}, {"ecmp", 1}, {"flowcell-drb", 4}} {
				before, wrapped := sumOf(shares(t, d)), sender.Stats()
				l, err := receiver.Listen("tcp", ":0")
				if err != nil {
					t.Fatal(err)
				}
				transfer(t, func() (net.Conn, error) {
					ctx, cancel := context.WithTimeout(stack.WithPolicy(context.Background(), c.policy), hung)
					defer cancel()
					return sender.DialContext(ctx, "tcp", l.Addr().String())
				}, l, size)
				l.Close()
				after, paths := sender.Stats(), 0
				was := make(map[netip.Addr]uint64)
				for _, p := range wrapped.Paths {
					was[p.Bounce] = p.Bytes
				}
				for _, p := range after.Paths {
					if p.Bytes-was[p.Bounce] > size/100 {
						paths++
					}
				}
				if paths != c.paths {
					t.Errorf("%s: by %d paths, want %d: %+v", c.policy, paths, c.paths, after.Paths)
				}
				if by := sumOf(shares(t, d)) - before; by > size/100 {
					t.Errorf("%s: the program has wrapped %d bytes", c.policy, by)
				}
			}
			// The Host's own flows still go by the program, whole.
			before, supers := sumOf(shares(t, d)), sender.Stats().Egress.Supers
			transferBetween(t, sender, receiver, size)
			if by := sumOf(shares(t, d)) - before; by < size {
				t.Errorf("presto: the program has wrapped %d bytes of %d", by, size)
			}
			if s := sender.Stats().Egress.Supers - supers; s < size/65536/2 {
				t.Errorf("presto: %d super-segments", s)
			}
		})
	}
}

// The log says why a Device is not as fast as it could be.
func TestOpen_logsWhatItDoesWithout(t *testing.T) {
	n := newNetwork(t)
	var log bytes.Buffer
	d, _ := n.open(t, near, "local", func(c *stack.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	if d.Encapsulates() {
		t.Fatal("the uplink encapsulates by own backlog")
	}
	if s := log.String(); strings.Count(s, "level=WARN") != 1 || !strings.Contains(s, `why="the Host encapsulates: spray: policy local`) {
		t.Errorf("the log says\n%s", s)
	}
}
