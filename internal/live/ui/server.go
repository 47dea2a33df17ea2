package ui

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"strconv"
	"sync"
	"time"

	"weft/internal/live"
)

//go:embed page
var page embed.FS

// Options are how a Server runs.
type Options struct {
	// Interval is from one frame to the next; 0: DefaultInterval. It is longer where a source
	// takes long.
	Interval time.Duration
}

// The intervals.
const (
	DefaultInterval = time.Second
	MinInterval     = 100 * time.Millisecond
)

// Times of requests.
const (
	requestTime = 5 * time.Second
	answerTime  = 30 * time.Second // for an answer to be taken
	sendTime    = 5 * time.Second  // for a message to a client to be taken
	quietTime   = 15 * time.Second // after which a comment is sent, so that an end is noticed
)

// Server serves a picture.
type Server struct {
	recorder *recorder
	key      string
}

// New returns a Server for a source, which the caller closes after Serve has returned.
func New(source live.Source, o Options) *Server {
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	return &Server{&recorder{source: source, interval: o.Interval, clients: make(map[*client]struct{})}, newKey()}
}

// Mark adds an event to the next frame. It may be called at any time.
func (s *Server) Mark(text string) { s.recorder.mark(text) }

// Key is what a request needs to make something fail.
func (s *Server) Key() string { return s.key }

// Serve answers at a listener until ctx is done, and closes it.
func (s *Server) Serve(ctx context.Context, l *Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.RWMutex // read while a request is answered
	handler := s.handler(ctx)
	awaited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.RLock()
		defer running.RUnlock()
		if ctx.Err() == nil {
			handler.ServeHTTP(w, r)
		}
	})
	server := &http.Server{Handler: awaited, ReadHeaderTimeout: requestTime, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0)} // anybody may send what is no request
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.recorder.run(ctx)
	}()
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	err := server.Serve(l.listener)
	cancel()
	server.Close()
	<-done
	running.Lock() // the caller closes the source next
	defer running.Unlock()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// handler answers requests; streams end with ctx.
func (s *Server) handler(ctx context.Context) http.Handler {
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /api/stream", func(w http.ResponseWriter, r *http.Request) { s.stream(ctx, w, r) })
	mux.HandleFunc("GET /api/history", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.recorder.history(), nil) })
	mux.HandleFunc("GET /api/fabric", s.fabric)
	mux.HandleFunc("GET /api/frame", func(w http.ResponseWriter, _ *http.Request) { s.frame(w, "0") })
	mux.HandleFunc("GET /api/frame/{seq}", func(w http.ResponseWriter, r *http.Request) { s.frame(w, r.PathValue("seq")) })
	mux.HandleFunc("GET /api/series", numbered(s.recorder.linkSeries, "link"))
	mux.HandleFunc("GET /api/members", numbered(s.recorder.members, "link"))
	mux.HandleFunc("GET /api/paths", s.paths)
	mux.HandleFunc("POST /api/fail", s.change(func(b live.Breaker, c change) error { return b.Fail(c.Target, c.Mode) }))
	mux.HandleFunc("POST /api/heal", s.change(func(b live.Breaker, c change) error { return b.Heal(c.Target) }))
	timely := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // stream has its own
		mux.ServeHTTP(w, r)
	})
	return guard(timely)
}

// stream tells a client what changes until it goes or is dropped.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	c, err := s.recorder.join()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.recorder.leave(c)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	write := func(message []byte) error {
		out.SetWriteDeadline(time.Now().Add(sendTime))
		if _, err := w.Write(message); err != nil {
			return err
		}
		return out.Flush()
	}
	if write([]byte("retry: 1000\n\n")) != nil {
		return
	}
	for {
		message := []byte(":\n\n")
		select {
		case <-ctx.Done():
			return
		case <-r.Context().Done():
			return
		case m, ok := <-c.messages:
			if !ok {
				return
			}
			message = m
		case <-time.After(quietTime):
		}
		if write(message) != nil {
			return
		}
	}
}

func (s *Server) fabric(w http.ResponseWriter, _ *http.Request) {
	s.recorder.mu.Lock()
	if s.recorder.full == nil {
		s.recorder.mu.Unlock()
		answer(w, nil, errNothing)
		return
	}
	p := s.recorder.picture()
	s.recorder.mu.Unlock()
	answer(w, p, nil)
}

func (s *Server) frame(w http.ResponseWriter, seq string) {
	n, err := strconv.ParseUint(seq, 10, 64)
	if err != nil {
		http.Error(w, fmt.Sprintf("frame %.20q is no number", seq), http.StatusBadRequest)
		return
	}
	f, err := s.recorder.frame(n)
	answer(w, f, err)
}

// paths answers with the paths between two nodes of what is drawn.
func (s *Server) paths(w http.ResponseWriter, r *http.Request) {
	from, err1 := strconv.Atoi(r.FormValue("from"))
	to, err2 := strconv.Atoi(r.FormValue("to"))
	if err := errors.Join(err1, err2); err != nil {
		http.Error(w, "from and to must be numbers of nodes", http.StatusBadRequest)
		return
	}
	s.recorder.mu.Lock()
	bundling := s.recorder.bundling
	s.recorder.mu.Unlock()
	if bundling != nil {
		answer(w, bundling.Fabric.Paths(from, to), nil)
		return
	}
	answer(w, s.recorder.source.Paths(from, to), nil)
}

// numbered answers with what f returns for the number of a parameter.
func numbered[T any](f func(int) (T, error), parameter string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.FormValue(parameter))
		if err != nil {
			http.Error(w, parameter+" must be a number", http.StatusBadRequest)
			return
		}
		v, err := f(n)
		answer(w, v, err)
	}
}

// answer writes JSON, or why there is none.
func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

// change is what makes something fail or heals it.
type change struct {
	Target string `json:"target"`
	Mode   string `json:"mode"`
}

// maxChange bounds the body of a change, in bytes.
const maxChange = 4096

// change carries one out for who has the key.
func (s *Server) change(do func(live.Breaker, change) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, ok := s.recorder.source.(live.Breaker)
		switch {
		case !hasKey(r, s.key):
			http.Error(w, "open the page by the address that weft printed: it has the key", http.StatusForbidden)
			return
		case !ok:
			http.Error(w, "only in a lab things can be made to fail", http.StatusNotFound)
			return
		}
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(requestTime))
		var c change
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxChange))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			http.Error(w, "body: "+err.Error(), http.StatusBadRequest)
			return
		}
		if err := do(b, c); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
