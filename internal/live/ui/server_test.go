package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/internal/live"
)

// fake is a source of a fabric of one host and one switch.
type fake struct {
	mu     sync.Mutex
	fabric *live.Fabric
	err    error
	n      int
	failed []string
}

func newFake(links int) *fake {
	f := &fake{fabric: &live.Fabric{Version: 1, Kind: live.KindLab, Name: "</script><b>", CanFail: true}}
	f.fabric.Nodes = []live.Node{{Name: "up", Tier: 1}}
	for i := range links {
		f.fabric.Nodes = append(f.fabric.Nodes, live.Node{Name: fmt.Sprintf("h%d", i)})
		f.fabric.Links = append(f.fabric.Links, live.Link{Name: fmt.Sprintf("h%d-up", i), A: i + 1, B: 0, Rate: 1e6})
	}
	return f
}

func (f *fake) Fabric(context.Context) (*live.Fabric, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fabric, f.err
}

func (f *fake) Sample(context.Context) (live.Sample, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	s := live.Sample{At: time.Now(), Links: make([]live.LinkSample, len(f.fabric.Links))}
	for i := range s.Links {
		s.Links[i] = live.LinkSample{State: live.Working, Up: live.Counters{Known: true, Bytes: uint64(f.n * 1000 * (i + 1))}}
	}
	return s, nil
}

func (f *fake) Paths(from, to int) []live.Path { return f.fabric.Paths(from, to) }

func (f *fake) Close() error { return nil }

func (f *fake) Modes() []string { return []string{"loud"} }

func (f *fake) Heal(string) error { return errors.New("heals nothing") }

func (f *fake) Fail(target, mode string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = append(f.failed, target+" "+mode)
	return nil
}

// serve serves a source by a Server whose frames the test makes: frame makes one.
func serve(t *testing.T, src live.Source) (s *Server, url string, frame func()) {
	t.Helper()
	s = New(src, Options{Interval: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(s.handler(ctx))
	t.Cleanup(func() { cancel(); server.Close() })
	frame = func() {
		if err := s.recorder.step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return s, server.URL, frame
}

// get returns the status and body of an answer, after edit has changed the request.
func get(t *testing.T, method, url, body string, edit func(*http.Request)) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(r)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text), a.Header
}

// events reads server-sent events.
func events(t *testing.T, url string) func() (name, data string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/api/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil || a.StatusCode != 200 {
		t.Fatal(err, a.Status)
	}
	t.Cleanup(func() { a.Body.Close() })
	lines := bufio.NewReader(a.Body)
	return func() (name, data string) {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return "end", err.Error()
			}
			line = strings.TrimSpace(line)
			if n, ok := strings.CutPrefix(line, "event: "); ok {
				name = n
			}
			if d, ok := strings.CutPrefix(line, "data: "); ok {
				return name, d
			}
		}
	}
}

// A client first gets the fabric and a whole frame, then what changes. What it has is what the
// server keeps.
func TestServer_stream(t *testing.T) {
	src := newFake(4)
	s, url, frame := serve(t, src)
	frame()
	next := events(t, url)
	if name, data := next(); name != "fabric" || !strings.Contains(data, `\u003c/script\u003e`) {
		t.Fatalf("%s %s", name, data)
	}
	var shown *live.Frame
	take := func(base uint64) {
		t.Helper()
		name, data := next()
		var d live.Delta
		if err := json.Unmarshal([]byte(data), &d); name != "frame" || err != nil {
			t.Fatalf("%s %s: %v", name, data, err)
		}
		if d.Base != base {
			t.Errorf("frame %d is to %d, want %d", d.Seq, d.Base, base)
		}
		var err error
		if shown, err = d.Apply(shown, 4); err != nil {
			t.Fatal(err)
		}
	}
	take(0)
	for i := range 3 {
		frame()
		take(uint64(i + 1))
	}
	_, text, _ := get(t, "GET", url+"/api/frame/4", "", nil)
	got, err := json.Marshal(shown)
	if err != nil || string(got)+"\n" != text {
		t.Errorf("shown\n%s\nkept\n%s\n%v", got, text, err)
	}
	s.Mark("a run begins")
	frame()
	take(4)
	if e := shown.Events; len(e) != 1 || e[0].Kind != live.EventMark || e[0].Text != "a run begins" {
		t.Errorf("events %v", e)
	}
	src.mu.Lock()
	src.err = errors.New("the lab is gone")
	src.mu.Unlock()
	s.recorder.tell(s.recorder.step(t.Context()).Error())
	if name, data := next(); name != "trouble" || data != `"the lab is gone"` {
		t.Errorf("%s %s", name, data)
	}
	other := newFake(2)
	other.fabric.Version = 2
	src.mu.Lock()
	src.fabric, src.err = other.fabric, nil
	src.mu.Unlock()
	frame()
	if name, _ := next(); name != "fabric" {
		t.Errorf("%s after another fabric", name)
	}
}
