package capture_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"weft/fabrictest"
	icapture "weft/internal/capture"
	"weft/internal/capture/file"
	"weft/internal/tsharktest"
	"weft/stack"
	"weft/stack/capture"
)

// transfer sends bytes from one Host to another, and waits until they are there.
func transfer(t *testing.T, from, to *stack.Host, bytes int) {
	t.Helper()
	l, err := to.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan int64, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- -1
			return
		}
		n, _ := io.Copy(io.Discard, c)
		c.Close()
		got <- n
	}()
	c, err := from.Dial("tcp", to.Address().String()+":80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if n := <-got; n != int64(bytes) {
		t.Fatalf("%d bytes arrived of %d", n, bytes)
	}
}

// What a capture of a Host says of what was delivered is what the Host's resequencer has
// counted; what leaves is told with its path, and tshark understands all of it.
func TestStart_agreesWithTheHostsCounters(t *testing.T) {
	f, err := fabrictest.New("fat-tree:k=4", fabrictest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	hosts := make([]*stack.Host, 2)
	for i, name := range []string{"h0.0.2", "h1.0.2"} {
		if hosts[i], err = f.Host(name, stack.Config{Policy: "drb", ConnPaths: true}); err != nil {
			t.Fatal(err)
		}
		defer hosts[i].Close()
	}
	var sent, got bytes.Buffer
	var captures []*capture.Capture
	for i, w := range []io.Writer{&sent, &got} {
		c, err := capture.Start(hosts[i], w, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		captures = append(captures, c)
	}
	const size = 300_000
	transfer(t, hosts[0], hosts[1], size)
	// What comes after the counters are read would be in one and not in the other.
	for end := time.Now().Add(30 * time.Second); hosts[1].Stats().Resequencer.HeldPackets > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("packets are still held")
		}
	}
	before := hosts[1].Stats().Resequencer
	for _, c := range captures {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if n := c.Dropped(); n > 0 {
			t.Skipf("%d packets found no room on this machine", n)
		}
	}
	after := hosts[1].Stats().Resequencer
	causes := make(map[string]uint64)
	paths := make(map[int]int)
	read := func(b *bytes.Buffer, each func(r *icapture.Record, n *icapture.Note)) {
		t.Helper()
		a := icapture.NewAnnotator(icapture.NewTopology(hosts[0].Topology()))
		if _, err := file.Read(bytes.NewReader(b.Bytes()), func(r *icapture.Record) error {
			n := a.Note(r)
			each(r, &n)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	payload := int64(0)
	read(&sent, func(r *icapture.Record, n *icapture.Note) {
		if r.Point == icapture.PointSent && n.Kind == icapture.KindData {
			paths[n.Path]++
			payload += int64(n.Packet.Payload)
		}
	})
	read(&got, func(r *icapture.Record, n *icapture.Note) {
		if r.Point == icapture.PointDelivered {
			causes[r.Cause]++
		}
	})
	for why, want := range map[string][2]uint64{
		"in-order": {before.InOrder, after.InOrder}, "filled": {before.Filled, after.Filled}, "timed-out": {before.TimedOut, after.TimedOut},
		"loss": {before.Loss, after.Loss}, "retransmission": {before.Retransmission, after.Retransmission}, "passed": {before.Passed, after.Passed},
	} {
		if causes[why] < want[0] || causes[why] > want[1] {
			t.Errorf("%d packets were delivered as %s; the Host counts %v", causes[why], why, want)
		}
	}
	for n := range 4 {
		if paths[n] == 0 {
			t.Errorf("no data by path %d: %v", n, paths)
		}
	}
	if paths[-1] > 0 || len(paths) != 4 || payload < size {
		t.Errorf("data by paths %v, %d bytes of it", paths, payload)
	}
	t.Run("tshark", func(t *testing.T) {
		for _, b := range []*bytes.Buffer{&sent, &got} {
			tsharktest.Clean(t, b.Bytes())
		}
	})
}

// A bound ends a capture, and the Host goes on.
func TestStart_ends(t *testing.T) {
	f, err := fabrictest.New("fat-tree:k=4", fabrictest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := f.Host("h0.0.2", stack.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := f.Host("h1.0.2", stack.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var out bytes.Buffer
	c, err := capture.Start(a, &out, capture.Options{Count: 10, Snap: 60})
	if err != nil {
		t.Fatal(err)
	}
	transfer(t, a, b, 100_000)
	<-c.Done()
	if err := c.Close(); err != nil || c.Packets() != 10 {
		t.Errorf("%d packets, %v", c.Packets(), err)
	}
	longest := 0
	if _, err := file.Read(&out, func(r *icapture.Record) error { longest = max(longest, len(r.Bytes)); return nil }); err != nil || longest > 60 {
		t.Errorf("a packet has %d bytes, %v", longest, err)
	}
	transfer(t, a, b, 100_000)
	if _, err := capture.Start(a, &out, capture.Options{Snap: -1}); err == nil {
		t.Error("Snap -1 is accepted")
	}
	full, err := capture.Start(a, broken{}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	transfer(t, a, b, 100_000)
	if err := full.Close(); err == nil {
		t.Error("a file that cannot be written is no error")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
