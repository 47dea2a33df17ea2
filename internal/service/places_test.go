package service

import (
	"io"
	"net"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// Ordinary users cannot take the places that are kept for root, and those who wait for a place
// are bounded.
func TestPlaces(t *testing.T) {
	p := newPlaces()
	var leaves []func()
	for range maxAsking {
		leave, ok := p.enter(1000)
		if !ok {
			t.Fatal("refused while there is room")
		}
		leaves = append(leaves, leave)
	}
	served := make(chan bool)
	for range maxWaiting {
		go func() {
			_, ok := p.enter(1000)
			served <- ok
		}()
	}
	for len(p.waiting) < maxWaiting {
		runtime.Gosched()
	}
	if _, ok := p.enter(1000); ok {
		t.Error("one more is served, where all places are taken")
	}
	for range keptForRoot {
		if _, ok := p.enter(0); !ok {
			t.Error("root is refused")
		}
	}
	leaves[0]()
	leaves[0]() // gives back one place, not two
	if !<-served {
		t.Error("who waits is refused")
	}
	select {
	case <-served:
		t.Error("two have taken one place")
	default:
	}
	p.end()
	for range maxWaiting - 1 {
		if <-served {
			t.Error("served after the end")
		}
	}
}

// Closing ends Accept though all places are taken. The server of the metrics over TCP waits
// for that.
func TestBounded_closes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no loopback: %v", err)
	}
	b := newBounded(l)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := b.Accept(); err != nil {
				return
			}
		}
	}()
	for range maxAsking {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for len(b.places.all) < maxAsking {
		runtime.Gosched()
	}
	b.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("Accept goes on after Close")
	}
}

// fill has as many connect as there are places for ordinary users and as may wait, and says
// something on each connection.
func fill(t *testing.T, name, said string, n int) {
	for range n {
		conn, err := net.Dial("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		io.WriteString(conn, said)
	}
}

// Who sends half a request holds no place for long: a body that does not come is not waited
// for.
func TestServeStatus_bodyThatDoesNotCome(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	l, err := ServeStatus(name, nil, func() any { return 1 }, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fill(t, name, "GET /status HTTP/1.1\r\nHost: weft\r\nContent-Length: 100\r\n\r\n", maxAsking+keptForRoot)
	fill(t, name, "GET /status HTTP/1.1\r\nHost: weft\r\nTransfer-Encoding: chunked\r\n\r\n", maxAsking+keptForRoot)
	if text, err := AskStatus(t.Context(), name, "weft host"); err != nil || string(text) != "1" {
		t.Errorf("%s, %v", text, err)
	}
}

// A socket that another daemon has opened at the same path is not removed.
func TestServeStatus_removesItsOwn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	serve := func(n int) io.Closer {
		l, err := ServeStatus(name, nil, func() any { return n }, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := serve(1)
	second := serve(2)
	defer second.Close()
	first.Close()
	if text, err := AskStatus(t.Context(), name, "weft host"); err != nil || string(text) != "2" {
		t.Errorf("%s, %v", text, err)
	}
}
