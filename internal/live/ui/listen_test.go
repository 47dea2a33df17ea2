package ui

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestListen(t *testing.T) {
	for at, want := range map[string]string{"0.0.0.0:0": "ssh -L 0:127.0.0.1:0", "192.0.2.1:80": "ssh -L 80:127.0.0.1:80", "host:80": "address and port", "127.0.0.1": "address and port"} {
		if l, err := Listen(at, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want an error with %q", at, l, err, want)
		}
	}
	l, err := Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Remote() || !strings.HasPrefix(l.URL("k"), "http://127.0.0.1:") || !strings.HasSuffix(l.URL("k"), "/#key=k") || strings.Contains(l.URL(""), "#") {
		t.Errorf("%s, remote %t", l.URL("k"), l.Remote())
	}
	if r, err := Listen("0.0.0.0:0", true); err != nil || !r.Remote() {
		t.Errorf("%v, %v", r, err)
	} else {
		r.Close()
	}
}

// A socket is its owner's. One that a crash left is replaced, one in use is not.
func TestListen_unix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ui")
	l, err := Listen(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if _, err := Listen(path, false); err == nil || !strings.Contains(err.Error(), "somebody answers") {
		t.Errorf("a second one: %v", err)
	}
	s := New(newFake(1), Options{Interval: MinInterval})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	a, err := client.Get("http://localhost/")
	if err != nil || a.StatusCode != 200 {
		t.Fatal(a, err)
	}
	a.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil { // a file is none of ours
		t.Fatal(err)
	}
	if _, err := Listen(path, false); err == nil {
		t.Error("a file was replaced")
	}
}

// Serve returns once no request is answered any more: nothing asks the source after that, and no
// goroutine is left.
func TestServe_endsWithItsRequests(t *testing.T) {
	l, err := Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	url := strings.TrimSuffix(l.URL(""), "/")
	ctx, cancel := context.WithCancel(t.Context())
	s := New(newFake(2), Options{Interval: MinInterval})
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	var streams []func() (string, string)
	for range 5 {
		streams = append(streams, events(t, url))
	}
	for _, next := range streams {
		for name := ""; name != "frame"; name, _ = next() {
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, next := range streams {
		for name := ""; name != "end"; name, _ = next() {
		}
	}
	if h := s.recorder.history(); h.Clients != 0 {
		t.Errorf("%d clients are left", h.Clients)
	}
	http.DefaultClient.CloseIdleConnections()
	for end := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}
