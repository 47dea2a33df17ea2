package fabrictest_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/fabrictest"
	"weft/stack"
)

// send moves bytes from one Host to another and returns how long it took.
func send(t *testing.T, client, server *stack.Host, n int, meanwhile func()) time.Duration {
	t.Helper()
	l, err := server.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	data := bytes.Repeat([]byte("weft"), n/4)
	got := make(chan [32]byte, 1)
	go func() {
		var sum [32]byte
		if c, err := l.Accept(); err == nil {
			h := sha256.New()
			io.Copy(h, c)
			c.Close()
			h.Sum(sum[:0])
		}
		got <- sum
	}()
	began := time.Now()
	c, err := client.Dial("tcp", netip.AddrPortFrom(server.Address(), netip.MustParseAddrPort(l.Addr().String()).Port()).String())
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(began.Add(time.Minute))
	if _, err := c.Write(data[:n/2]); err != nil {
		t.Fatal(err)
	}
	if meanwhile != nil {
		meanwhile()
	}
	if _, err := c.Write(data[n/2:]); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if <-got != sha256.Sum256(data) {
		t.Error("what arrived is not what was sent")
	}
	return time.Since(began)
}

func newFabric(t *testing.T, c stack.Config) (f *fabrictest.Fabric, client, server *stack.Host) {
	t.Helper()
	f, err := fabrictest.New("fat-tree:k=4", fabrictest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	if client, err = f.Host("h0.0.2", c); err != nil {
		t.Fatal(err)
	}
	if server, err = f.Host("10.3.1.3", c); err != nil {
		t.Fatal(err)
	}
	return f, client, server
}

func carried(t *testing.T, f *fabrictest.Fabric, link string) uint64 {
	t.Helper()
	up, _, err := f.Carried(link)
	if err != nil {
		t.Fatal(err)
	}
	return up
}

var ways = []string{"a0.2-c1.1", "a0.2-c1.2", "a0.3-c2.1", "a0.3-c2.2"}

func TestFabric_everyPathUnderOneConnection(t *testing.T) {
	f, client, server := newFabric(t, stack.Config{Policy: "drb"}) // whole flowcells would not be as even
	const n = 1 << 20
	send(t, client, server, n, nil)
	for _, w := range ways {
		if got := carried(t, f, w); got < n/5 || got > n/3 {
			t.Errorf("%s carried %d bytes of %d", w, got, n)
		}
	}
}

func TestFabric_aFailureThatAllKnow(t *testing.T) {
	f, client, server := newFabric(t, stack.Config{})
	var before uint64
	send(t, client, server, 1<<20, func() {
		if err := f.Fail("c1.1"); err != nil {
			t.Error(err)
		}
		before = carried(t, f, ways[0])
	})
	if after := carried(t, f, ways[0]); after > before+20*1514 { // what was in the queue
		t.Errorf("%d bytes went to the dead switch", after-before)
	}
	if err := f.Heal("c1.1"); err != nil || len(f.Topology().Down()) > 0 {
		t.Error(err, f.Topology().Down())
	}
	send(t, client, server, 1<<20, nil)
	if carried(t, f, ways[0]) == before {
		t.Error("the healed switch carries nothing")
	}
}

func TestFabric_aSilentFailureIsFound(t *testing.T) {
	f, client, server := newFabric(t, stack.Config{Liveness: &stack.Liveness{}})
	took := send(t, client, server, 1<<20, func() {
		if err := f.FailSilently("a0.2-c1.1"); err != nil {
			t.Error(err)
		}
	})
	if len(f.Topology().Down()) > 0 {
		t.Error("everybody was told")
	}
	t.Logf("1 MiB with a hole after half of it: %v", took)
}

func TestFabric_bad(t *testing.T) {
	for _, c := range []struct {
		form string
		fabrictest.Config
		says string
	}{
		{"ring", fabrictest.Config{}, "ring"},
		{"fat-tree:k=4", fabrictest.Config{RateMbit: -1}, "RateBits"},
		{"fat-tree:k=4", fabrictest.Config{Delay: -1}, "Delay"},
	} {
		if _, err := fabrictest.New(c.form, c.Config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	f, _, _ := newFabric(t, stack.Config{})
	_, onSwitch := f.Host("c1.1", stack.Config{})
	_, twice := f.Host("h0.0.2", stack.Config{})
	_, nowhere := f.Host("h9.0.2", stack.Config{})
	_, _, noLink := f.Carried("x")
	for _, e := range []struct {
		err  error
		says string
	}{
		{onSwitch, "is a switch"}, {twice, "already"}, {nowhere, "h9.0.2"}, {noLink, "x"},
		{f.Fail("h0.0.2"), "is a host"}, {f.Fail("c1.1-c1.2"), "not wired"}, {f.Heal("nobody"), "nobody"},
	} {
		if e.err == nil || !strings.Contains(e.err.Error(), e.says) {
			t.Errorf("%v does not say %q", e.err, e.says)
		}
	}
	f.Close()
	if _, err := f.Host("h0.0.3", stack.Config{}); err == nil || f.Fail("c1.1") == nil {
		t.Error("a closed fabric goes on")
	}
}

// A service's own test: one connection over every path, and a switch that dies.
func Example() {
	f, err := fabrictest.New("leaf-spine:leaves=2,spines=2,hosts=2", fabrictest.Config{})
	if err != nil {
		panic(err)
	}
	defer f.Close()
	server, _ := f.Host("h0.1.2", stack.Config{})
	client, _ := f.Host("h0.0.2", stack.Config{})

	l, _ := server.Listen("tcp", ":80")
	go func() {
		c, _ := l.Accept()
		io.Copy(c, c)
		c.Close()
	}()
	c, err := client.Dial("tcp", server.Address().String()+":80")
	if err != nil {
		panic(err)
	}
	if err := f.Fail("a0.0"); err != nil {
		panic(err)
	}
	fmt.Fprint(c, "still here")
	answer := make([]byte, 10)
	_, err = io.ReadFull(c, answer)
	fmt.Println(string(answer), err)
	// Output: still here <nil>
}
