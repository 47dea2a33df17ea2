package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// NoStatus as the path of a status socket means that the daemon has none.
const NoStatus = "off"

// maxSocketPath is the kernel's sun_path less the terminating zero, in bytes.
const maxSocketPath = 107

// CheckStatusPath returns what is wrong with the path of a status socket, nil if it is
// right.
func CheckStatusPath(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("is a path of %d bytes; the kernel takes at most %d for a socket", len(path), maxSocketPath)
	}
	return nil
}

// answerTime bounds how long one who asks is waited for, once there is an answer.
const answerTime = time.Second

// askTime bounds how long a daemon is waited for. It may be about to mend what the
// kernel takes seconds for, while others change its network, too.
const askTime = 30 * time.Second

// lookAfter is when it is looked at why nobody has answered yet.
const lookAfter = time.Second

// maxStatus bounds an answer, in bytes.
const maxStatus = 16 << 20

// ServeStatus opens a Unix socket at path and answers who connects. One who says nothing, or
// says no more, gets what status returns, as JSON; an HTTP request gets /metrics of c, /status,
// what more has, or what root may see (see web). It replaces a socket that a crash left. Closing the closer
// ends this and removes the socket. Everybody may read it: counters are no secret. status is
// called by one goroutine at a time, and c collects beside it; c nil means no metrics. If path is
// NoStatus, ServeStatus does nothing. If path is "", it takes the one that standard returns.
func ServeStatus(path string, standard func() (string, error), status func() any, c prometheus.Collector, more ...Route) (io.Closer, error) {
	switch path {
	case NoStatus:
		return io.NopCloser(nil), nil
	case "":
		var err error
		if path, err = standard(); err != nil {
			return nil, err
		}
	}
	if st, err := os.Lstat(path); err == nil && st.Mode().Type() == os.ModeSocket {
		os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err == nil {
		if err = os.Chmod(path, 0o666); err != nil {
			l.Close()
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: the user of number %d may not write there; choose another directory", err, os.Getuid())
	}
	if err != nil {
		return nil, err
	}
	s := newSocket(l, path, status, c, more)
	go s.accept()
	return s, nil
}

// unanswered says why nobody answers at a socket.
func unanswered(path, who string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("status: there is no socket %s; is %s running in this network namespace? (--socket names another's)", path, who)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("status: %s: permission denied; ask as a user who may write there, or give %s another path (key status)", path, who)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("status: nobody answers at %s; is %s running in this network namespace? (--socket names another's)", path, who)
	}
	return fmt.Errorf("status: %w; is %s running in this network namespace? (--socket names another's)", err, who)
}

// SilentError is the error of AskStatus if a process has the socket and does not answer.
type SilentError struct {
	Process int  // 0: the kernel does not say
	Held    bool // it is stopped, as by SIGSTOP
	err     error
}

func (e SilentError) Error() string { return e.err.Error() }
func (e SilentError) Unwrap() error { return e.err }

// AskStatus returns the status, as JSON, of the daemon behind a socket. It waits for at most
// 30 s, and no longer than ctx. If nobody answers, who is the name of that daemon in the error.
func AskStatus(ctx context.Context, path, who string) ([]byte, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, unanswered(path, who, err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(askTime))
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })()
	var held atomic.Int64 // the process that is behind the socket and does not run
	look := time.AfterFunc(lookAfter, func() {
		if pid := heldBehind(conn); pid != 0 {
			held.Store(int64(pid))
			conn.SetDeadline(time.Now())
		}
	})
	defer look.Stop()
	if c, ok := conn.(*net.UnixConn); ok {
		c.CloseWrite() // says that no request follows
	}
	b, err := io.ReadAll(io.LimitReader(conn, maxStatus))
	switch {
	case err != nil && held.Load() != 0:
		err = fmt.Errorf("%s does not answer: process %d is stopped (SIGSTOP); kill -CONT %[2]d has it go on", who, held.Load())
	case err != nil && ctx.Err() != nil:
		err = fmt.Errorf("%s does not answer: %w", who, context.Cause(ctx))
	case err == nil && len(b) == 0:
		err = fmt.Errorf("%s has not answered: too many others ask, or it stops; ask again", who)
	case err == nil && !json.Valid(b):
		err = fmt.Errorf("%s: not a status: %q", path, b[:min(len(b), 40)])
	}
	if err != nil {
		return nil, SilentError{processBehind(conn), held.Load() != 0, fmt.Errorf("status: %w", err)}
	}
	return bytes.TrimSpace(b), nil
}
