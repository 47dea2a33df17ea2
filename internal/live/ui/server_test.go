package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
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
func (f *fake) Close() error                   { return nil }
func (f *fake) Modes() []string                { return []string{"loud"} }
func (f *fake) Heal(string) error              { return errors.New("heals nothing") }
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

// Other pages of the same browser, names that were bound to this host, and who has no key can
// make nothing fail.
func TestServer_refuses(t *testing.T) {
	src := newFake(3)
	s, url, frame := serve(t, src)
	frame()
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set(keyHeader, s.Key())
			r.Header.Set(name, value)
		}
	}
	host := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(keyHeader, s.Key()); r.Host = name }
	}
	const good = `{"target":"h0-up","mode":"loud"}`
	for name, c := range map[string]struct {
		method, path, body string
		edit               func(*http.Request)
		want               int
	}{
		"the page itself":          {"POST", "/api/fail", good, header("Sec-Fetch-Site", "same-origin"), 204},
		"a program":                {"POST", "/api/fail", good, header("Accept", "*/*"), 204},
		"without the key":          {"POST", "/api/fail", good, nil, 403},
		"with another key":         {"POST", "/api/fail", good, header(keyHeader, "x"+s.Key()), 403},
		"another site":             {"POST", "/api/fail", good, header("Sec-Fetch-Site", "cross-site"), 403},
		"another port":             {"POST", "/api/fail", good, header("Sec-Fetch-Site", "same-site"), 403},
		"another origin":           {"POST", "/api/fail", good, header("Origin", "http://evil.example"), 403},
		"a name bound to us":       {"POST", "/api/fail", good, host("evil.example"), 421},
		"a name bound to us, read": {"GET", "/api/frame", "", host("evil.example:9470"), 421},
		"another site, read":       {"GET", "/api/stream", "", header("Sec-Fetch-Site", "cross-site"), 403},
		"localhost":                {"GET", "/api/frame", "", host("localhost:9470"), 200},
		"IPv6":                     {"GET", "/api/frame", "", host("[::1]:9470"), 200},
		"no body":                  {"POST", "/api/fail", "", header("A", "b"), 400},
		"too long a body":          {"POST", "/api/fail", `{"target":"` + strings.Repeat("x", maxChange) + `"}`, header("A", "b"), 400},
		"an unknown field":         {"POST", "/api/fail", `{"targets":"x"}`, header("A", "b"), 400},
		"what cannot be done":      {"POST", "/api/heal", `{"target":"x"}`, header("A", "b"), 409},
		"the wrong method":         {"GET", "/api/fail", "", nil, 404},
		"no number":                {"GET", "/api/frame/x", "", nil, 400},
		"a frame that is no more":  {"GET", "/api/frame/77", "", nil, 404},
		"no link":                  {"GET", "/api/series?link=99", "", nil, 404},
		"no node":                  {"GET", "/api/paths?from=-1&to=99999", "", nil, 200},
		"no bundle":                {"GET", "/api/members?link=-1", "", nil, 200},
		"outside of the page":      {"GET", "/../server.go", "", nil, 404},
	} {
		src.mu.Lock()
		src.failed = nil
		src.mu.Unlock()
		code, text, _ := get(t, c.method, url+c.path, c.body, c.edit)
		if code != c.want {
			t.Errorf("%s: %d, want %d: %s", name, code, c.want, text)
		}
		src.mu.Lock()
		if did := slices.Equal(src.failed, []string{"h0-up loud"}); did != (c.want == 204) {
			t.Errorf("%s: made fail: %q", name, src.failed)
		}
		src.mu.Unlock()
	}
}

// All answers say that no other script may run, and no file of the page has one inside.
func TestServer_policy(t *testing.T) {
	_, url, frame := serve(t, newFake(1))
	frame()
	for _, path := range []string{"/", "/main.js", "/api/frame", "/nothing"} {
		_, text, h := get(t, "GET", url+path, "", nil)
		if p := h.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
			t.Errorf("%s: policy %q", path, p)
		}
		if path == "/" && (strings.Contains(text, "<script>") || strings.Contains(text, " onclick=") || strings.Contains(text, "style=")) {
			t.Error("the page has a script or a style inside")
		}
	}
	files, err := filepath.Glob("page/*.js")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "new Function", "http://", "https://"} {
			if i := strings.Index(string(b), bad); i >= 0 && !strings.Contains(string(b), "http://www.w3.org/2000/svg") {
				t.Errorf("%s has %s", name, bad)
			}
		}
	}
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

// A client that reads nothing is dropped, and the others go on.
func TestRecorder_slowClients(t *testing.T) {
	s, _, frame := serve(t, newFake(1))
	slow, err := s.recorder.join()
	if err != nil {
		t.Fatal(err)
	}
	quick, err := s.recorder.join()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * maxWaiting {
		frame()
		for len(quick.messages) > 0 {
			<-quick.messages
		}
	}
	n := 0
	for range slow.messages { // ends, as it is closed
		n++
	}
	h := s.recorder.history()
	if n != maxWaiting || h.Slow != 1 || h.Clients != 1 {
		t.Errorf("the slow one got %d messages, %d dropped, %d left; want %d, 1 and 1", n, h.Slow, h.Clients, maxWaiting)
	}
	s.recorder.leave(quick)
	s.recorder.leave(slow)
	for range maxClients {
		if _, err := s.recorder.join(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.recorder.join(); err == nil {
		t.Errorf("more than %d clients", maxClients)
	}
}

// A large fabric is drawn in bundles; the members of one are told, the worst first.
func TestRecorder_bundles(t *testing.T) {
	src := newFake(live.MaxDrawn + 1)
	s, url, frame := serve(t, src)
	frame()
	frame()
	if p := s.recorder.picture(); !p.Bundles || p.CanFail || len(p.Links) != live.MaxDrawn+1 { // every host is a pod
		t.Errorf("bundles %t, can fail %t, %d links", p.Bundles, p.CanFail, len(p.Links))
	}
	_, text, _ := get(t, "GET", url+"/api/members?link=5", "", nil)
	var members []member
	if err := json.Unmarshal([]byte(text), &members); err != nil || len(members) != 1 || members[0].Name != "h5-up" {
		t.Errorf("members %s, %v", text, err)
	}
	all := []member{{Name: "idle"}, {Name: "busy", LinkFrame: live.LinkFrame{Up: live.Flow{Use: 1}}}, {Name: "drops", LinkFrame: live.LinkFrame{Down: live.Flow{Drops: 1}}}, {Name: "down", LinkFrame: live.LinkFrame{State: live.Broken}}}
	sortMembers(all)
	if all[0].Name != "down" || all[1].Name != "drops" || all[2].Name != "busy" {
		t.Errorf("order %v", all)
	}
}

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
