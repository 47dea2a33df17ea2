package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// keyHeader has the key. A page from elsewhere cannot send it without asking first, which is
// never granted.
const keyHeader = "X-Weft-Key"

// newKey returns a key of 128 bits or more.
func newKey() string { return rand.Text() }

// policy is the Content-Security-Policy of all answers.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard refuses what comes from other pages of the same browser, and tells the browser what
// this page may do.
func guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		switch site := r.Header.Get("Sec-Fetch-Site"); {
		case !literalHost(r.Host):
			http.Error(w, "the page is at an address, such as 127.0.0.1, or at localhost: a name could be anybody's", http.StatusMisdirectedRequest)
			return
		case strings.HasPrefix(r.URL.Path, "/api/") && site != "" && site != "same-origin" && site != "none":
			http.Error(w, "only the page itself may ask this", http.StatusForbidden)
			return
		}
		if err := cross.Check(r); err != nil {
			http.Error(w, "only the page itself may ask this: "+err.Error(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// literalHost reports whether a Host header is an IP address or localhost, with a port or
// without. No other name can be trusted: whoever owns it can have it mean this machine (DNS
// rebinding).
func literalHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if strings.EqualFold(name, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.Zone() == ""
}

// hasKey reports whether a request has the key.
func hasKey(r *http.Request, key string) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(keyHeader)), []byte(key)) == 1
}
