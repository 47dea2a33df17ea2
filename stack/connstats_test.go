package stack_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"reflect"
	"sync"
	"testing"
	"time"

	"weft/resequencer"
	"weft/stack"
)

// transferred opens connections between two Hosts and sends bytes over each, at the same time.
// It returns both ends of each.
func transferred(t *testing.T, client, server *stack.Host, bytes ...int) (from, to []net.Conn) {
	t.Helper()
	l, err := server.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var all sync.WaitGroup
	for _, n := range bytes {
		a, err := client.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		from, to = append(from, a), append(to, b)
		all.Go(func() {
			if _, err := a.Write(make([]byte, n)); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if _, err := io.ReadFull(b, make([]byte, n)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return from, to
}

func statsOf(t *testing.T, h *stack.Host, c net.Conn) stack.ConnStats {
	t.Helper()
	s, err := h.ConnStats(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What two connections have done is together what their Hosts have done: the Hosts have no others.
func TestHost_ConnStats(t *testing.T) {
	client, server, end := pair(stack.Config{Policy: "drb", ConnPaths: true})
	defer end()
	const n = 1 << 20
	sizes := []int{n, n / 2}
	from, to := transferred(t, client, server, sizes...)
	for i, size := range sizes {
		if s := statsOf(t, client, from[i]); s.Sent != uint64(size) || s.Received != 0 || s.RTT <= 0 || len(s.Paths) != 4 || s.SegmentsSent == 0 {
			t.Errorf("the client's: %+v", s)
		}
		if s := statsOf(t, server, to[i]); s.Sent != 0 || s.Received != uint64(size) || s.SegmentsReceived == 0 {
			t.Errorf("the server's: %+v", s)
		}
	}
	// Acknowledgements may be under way still.
	same := func(h *stack.Host, conns []net.Conn) bool {
		sum, paths := stack.ConnStats{}, map[string]stack.PathStats{}
		for _, c := range conns {
			s := statsOf(t, h, c)
			sum.Retransmits += s.Retransmits
			sum.Timeouts += s.Timeouts
			sum.OutOfOrder += s.OutOfOrder
			sum.Held += s.Held
			if s.Elsewhere != (stack.PathStats{}) {
				t.Fatalf("sent elsewhere: %+v", s.Elsewhere)
			}
			for _, p := range s.Paths {
				q := paths[p.Bounce.String()]
				paths[p.Bounce.String()] = stack.PathStats{Bounce: p.Bounce, Packets: p.Packets + q.Packets, Bytes: p.Bytes + q.Bytes}
			}
		}
		all, host := h.Stats(), map[string]stack.PathStats{}
		for _, p := range all.Paths {
			if p.Packets > 0 {
				host[p.Bounce.String()] = p
			}
		}
		return reflect.DeepEqual(paths, host) && sum.Retransmits == all.TCP.Retransmits && sum.Timeouts == all.TCP.Timeouts &&
			sum.OutOfOrder == all.Resequencer.ArrivedOutOfOrder && sum.Held >= released(&all.Resequencer)
	}
	eventually(t, "the connections' counters are the client's", func() bool { return same(client, from) })
	eventually(t, "the connections' counters are the server's", func() bool { return same(server, to) })
}

// released is how many packets have waited, but for those that a loss has released.
func released(s *resequencer.Stats) uint64 {
	return s.Filled + s.TimedOut + s.Bound + s.Flushed + uint64(s.HeldPackets)
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

// Without ConnPaths there is all but the paths. Connections of others, closed ones and those that are
// not TCP are refused. One may ask while others read and write.
func TestHost_ConnStats_refuses(t *testing.T) {
	client, server, end := pair(stack.Config{})
	defer end()
	from, to := transferred(t, client, server, 1000)
	if s := statsOf(t, client, from[0]); s.Sent != 1000 || s.Paths != nil || s.Elsewhere != (stack.PathStats{}) {
		t.Errorf("without ConnPaths: %+v", s)
	}
	if s := statsOf(t, client, tls.Client(from[0], &tls.Config{ServerName: "x"})); s.Sent != 1000 {
		t.Errorf("of one that is wrapped: %+v", s)
	}
	udp, err := client.Dial("udp", "10.3.1.131:9")
	if err != nil {
		t.Fatal(err)
	}
	one, _ := net.Pipe()
	for what, c := range map[string]net.Conn{"another Host's": to[0], "UDP": udp, "a pipe": one, "itself": loop{}, "none": nil} {
		if _, err := client.ConnStats(c); err == nil || errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				if _, err := client.ConnStats(from[0]); err != nil && !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() { from[0].Write(make([]byte, 100_000)); from[0].Close() })
	all.Go(func() { io.Copy(io.Discard, to[0]) })
	all.Wait()
	var op *net.OpError
	if _, err := client.ConnStats(from[0]); !errors.Is(err, net.ErrClosed) || !errors.As(err, &op) {
		t.Errorf("of a closed one: %v", err)
	}
	server.Close()
	if _, err := server.ConnStats(to[0]); !errors.Is(err, net.ErrClosed) {
		t.Errorf("of a closed Host's: %v", err)
	}
}

// loop is a wrapper of itself.
type loop struct{ net.Conn }

func (l loop) NetConn() net.Conn { return l }
