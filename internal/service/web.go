package service

import (
	"context"
	"expvar"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// requestTime bounds how long a request may take to come.
	requestTime = 5 * time.Second
	// scrapeTime bounds how long one who scrapes is waited for, and waits: the owner of what is
	// told may be about to mend what the kernel takes seconds for.
	scrapeTime = 10 * time.Second
	// scrapes is how many are answered at a time; more are told to come again (503).
	scrapes = 3
)

// Metrics is the section "metrics" of a daemon's configuration: who may ask over the network.
type Metrics struct {
	// Listen is an address and a port of TCP, NoStatus for none.
	Listen string `yaml:"listen"`
	// Remote says that Listen may be an address that others than this host reach.
	Remote bool `yaml:"remote"`
}

// Check returns what is wrong with the section: the key and the error.
func (m Metrics) Check() (key string, err error) {
	if m.Listen == NoStatus {
		return "", nil
	}
	at, err := netip.ParseAddrPort(m.Listen)
	switch {
	case err != nil || at.Port() == 0:
		return "metrics.listen", fmt.Errorf("%q is no address and port; write one such as 127.0.0.1:9469, or %s", m.Listen, NoStatus)
	case !at.Addr().Unmap().IsLoopback() && !m.Remote:
		return "metrics.listen", fmt.Errorf("%v can be reached from the network, and metrics have neither encryption nor a password; listen at 127.0.0.1:%d, or set metrics.remote to true if a firewall or a proxy guards it", at, at.Port())
	}
	return "", nil
}

// registry has a daemon's metrics, and those of its process.
func registry(c prometheus.Collector) *prometheus.Registry {
	r := prometheus.NewRegistry()
	if c != nil {
		r.MustRegister(c)
	}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	return r
}

// scrape returns what answers /metrics.
func scrape(c prometheus.Collector) http.Handler {
	return promhttp.HandlerFor(registry(c), promhttp.HandlerOpts{
		MaxRequestsInFlight: scrapes, Timeout: scrapeTime, ErrorHandling: promhttp.ContinueOnError,
	})
}

// peerKey is the key of who asks in a request's context: a UID.
type peerKey struct{}

// quiet is where the servers say which requests were none: anybody may send such.
var quiet = log.New(io.Discard, "", 0)

// nobody is who asks if the kernel does not say.
const nobody = -1

// onlyRoot refuses all but root. Profiles show what a program has in memory, and take its time.
func onlyRoot(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if uid, ok := r.Context().Value(peerKey{}).(int); !ok || uid != 0 {
			http.Error(w, "only root may see this", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// newServer returns a server on which nobody holds a place for long. Who takes a profile does:
// the handlers of pprof add its duration to WriteTimeout.
func newServer(h http.Handler) *http.Server {
	return &http.Server{Handler: bodiless(h), ReadTimeout: requestTime, WriteTimeout: 2 * scrapeTime, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: quiet}
}

// bodiless refuses requests with a body: none of what is asked for takes one.
func bodiless(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if r.ContentLength != 0 {
			c.SetReadDeadline(time.Now()) // the server would wait for the body
			http.Error(w, "a request here has no body", http.StatusRequestEntityTooLarge)
			return
		}
		// The request is there. The server reads on to see when the connection ends, and would
		// take the end of requestTime for that.
		c.SetReadDeadline(time.Time{})
		h.ServeHTTP(w, r)
	})
}

// Route is what else a status socket answers by HTTP.
type Route struct {
	Pattern string // as http.ServeMux has it
	Root    bool   // only root may ask
	Handler http.Handler
}

// web returns the server of a status socket: /metrics for everybody, /status as the socket's
// own protocol has it, /debug for root, and what more has.
func web(c prometheus.Collector, status http.HandlerFunc, more []Route) *http.Server {
	mux := http.NewServeMux()
	for _, r := range more {
		if r.Root {
			r.Handler = onlyRoot(r.Handler)
		}
		mux.Handle(r.Pattern, r.Handler)
	}
	mux.Handle("GET /metrics", scrape(c))
	mux.HandleFunc("GET /status", status)
	mux.Handle("GET /debug/vars", onlyRoot(expvar.Handler()))
	debug := http.NewServeMux()
	debug.HandleFunc("/debug/pprof/", pprof.Index)
	debug.HandleFunc("/debug/pprof/profile", pprof.Profile)
	debug.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	debug.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.Handle("GET /debug/pprof/", onlyRoot(debug))
	s := newServer(mux)
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, peerKey{}, peer(conn))
	}
	s.SetKeepAlivesEnabled(false) // each connection is asked for anew which protocol it speaks
	return s
}

// ServeMetrics answers GET /metrics over TCP, as the configuration says, until the closer is
// closed. Nothing else is told there.
func ServeMetrics(m Metrics, c prometheus.Collector) (io.Closer, error) {
	if m.Listen == NoStatus {
		return io.NopCloser(nil), nil
	}
	l, err := net.Listen("tcp", m.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w; choose another port or address, or %s", err, NoStatus)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", scrape(c))
	s := newServer(mux)
	go s.Serve(newBounded(l))
	return s, nil
}
