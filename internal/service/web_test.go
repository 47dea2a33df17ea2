package service

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func testCollector() prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "weft_test_value", Help: "For this test."})
	g.Set(7)
	return g
}

// over returns a client that asks a Unix socket.
func over(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
}

func get(t *testing.T, c *http.Client, url string) (code int, body string) {
	t.Helper()
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestServeStatus_twoProtocols(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	l, err := ServeStatus(name, nil, func() any { return map[string]int{"a": 1} }, testCollector())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := over(name)
	var all sync.WaitGroup
	for range 2 * maxAsking {
		all.Go(func() {
			if code, body := get(t, c, "http://weft/metrics"); code != 200 && code != 503 || code == 200 && !strings.Contains(body, "\nweft_test_value 7\n") {
				t.Errorf("metrics: %d %s", code, body)
			}
			if text, err := AskStatus(t.Context(), name, "weft host"); err != nil || string(text) != `{"a":1}` {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
	all.Wait()
	if code, body := get(t, c, "http://weft/metrics"); code != 200 || !strings.Contains(body, "\nprocess_start_time_seconds ") || !strings.Contains(body, "\ngo_goroutines ") {
		t.Errorf("metrics: %d %s", code, body)
	}
	if code, body := get(t, c, "http://weft/status"); code != 200 || body != "{\"a\":1}\n" {
		t.Errorf("status: %d %s", code, body)
	}
	if code, _ := get(t, c, "http://weft/other"); code != 404 {
		t.Errorf("other: %d", code)
	}
	want := http.StatusForbidden
	if os.Getuid() == 0 {
		want = 200
	}
	for _, path := range []string{"/debug/vars", "/debug/pprof/", "/debug/pprof/goroutine"} {
		if code, body := get(t, c, "http://weft"+path); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, body, want)
		}
	}
}

func TestOnlyRoot(t *testing.T) {
	for uid, want := range map[any]int{0: 200, 1000: 403, nobody: 403, nil: 403} {
		r := httptest.NewRequest("GET", "/", nil)
		if uid != nil {
			r = r.WithContext(context.WithValue(r.Context(), peerKey{}, uid))
		}
		w := httptest.NewRecorder()
		onlyRoot(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%v: %d, want %d", uid, w.Code, want)
		}
	}
}

// Who connects and goes, or says what is no request, leaves no place taken.
func TestServeStatus_badClients(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	l, err := ServeStatus(name, nil, func() any { return 1 }, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, said := range []string{"", "G", "GET ", "GET /\r\n", "POST / HTTP/1.1\r\n\r\n", "GET / HTTP/9\r\n\r\n", strings.Repeat("GET ", 10_000)} {
		for range maxAsking {
			conn, err := net.Dial("unix", name)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(conn, said)
			conn.Close()
		}
	}
	if text, err := AskStatus(t.Context(), name, "weft host"); err != nil || string(text) != "1" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestServeMetrics_overTCP(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no loopback: %v", err)
	}
	at := probe.Addr().String()
	if l, err := ServeMetrics(Metrics{Listen: at}, testCollector()); err == nil {
		l.Close()
		t.Error("no error for a port that is taken")
	}
	probe.Close()
	l, err := ServeMetrics(Metrics{Listen: at}, testCollector())
	if err != nil {
		t.Fatal(err)
	}
	if code, body := get(t, http.DefaultClient, "http://"+at+"/metrics"); code != 200 || !strings.Contains(body, "\nweft_test_value 7\n") {
		t.Errorf("%d %s", code, body)
	}
	for _, path := range []string{"/debug/pprof/", "/debug/vars", "/status", "/"} {
		if code, _ := get(t, http.DefaultClient, "http://"+at+path); code != 404 {
			t.Errorf("%s: %d, want 404", path, code)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if l, err := ServeMetrics(Metrics{Listen: NoStatus}, nil); err != nil || l.Close() != nil {
		t.Errorf("off: %v", err)
	}
}

// Closing waits for nobody, though all places are taken by connections that say nothing.
func TestServeMetrics_closes(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no loopback: %v", err)
	}
	at := probe.Addr().String()
	probe.Close()
	l, err := ServeMetrics(Metrics{Listen: at}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range maxAsking + 1 {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	time.Sleep(100 * time.Millisecond) // for the server to accept them; if it has not, the test proves less
	closed := make(chan error)
	go func() { closed <- l.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Second):
		t.Error("Close waits for those who say nothing")
	}
}

// A request is read in a short time. The answer may take longer, as a profile does.
func TestNewServer_longAnswer(t *testing.T) {
	s := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(300 * time.Millisecond):
			io.WriteString(w, "done")
		case <-r.Context().Done():
		}
	}))
	s.ReadTimeout = 50 * time.Millisecond
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()
	c := over(l.Addr().String())
	if code, body := get(t, c, "http://weft/"); code != 200 || body != "done" {
		t.Errorf("%d %q", code, body)
	}
	r, err := c.Post("http://weft/", "text/plain", strings.NewReader("a body"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); r.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body: %s", r.Status)
	}
}

func TestMetricsCheck(t *testing.T) {
	for listen, want := range map[string]string{
		NoStatus: "", "127.0.0.1:9469": "", "[::1]:9469": "", "[::ffff:127.0.0.1]:9469": "",
		"": "no address", "9469": "no address", ":9469": "no address", "127.0.0.1:0": "no address", "localhost:9469": "no address",
		"0.0.0.0:9469": "metrics.remote", "[::]:9469": "metrics.remote", "192.0.2.1:9469": "metrics.remote",
	} {
		key, err := Metrics{Listen: listen}.Check()
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || key != "metrics.listen") {
			t.Errorf("%q: %s: %v, want %q", listen, key, err, want)
		}
	}
	if _, err := (Metrics{Listen: "0.0.0.0:9469", Remote: true}).Check(); err != nil {
		t.Error(err)
	}
}
