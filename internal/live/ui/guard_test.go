package ui

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

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
