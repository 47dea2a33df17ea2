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
	"time"
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

// maxStatus bounds an answer, in bytes.
const maxStatus = 16 << 20

// ServeStatus opens a Unix socket at path and answers every connection with what status
// returns, as JSON, from a goroutine of its own. It replaces a socket that a crash left.
// Closing the closer ends this and removes the socket. Everybody may read it: counters are
// no secret. If path is NoStatus, it does nothing. If path is "", it takes the one that
// standard returns.
func ServeStatus(path string, standard func() (string, error), status func() any) (io.Closer, error) {
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
	go answerStatus(l, status)
	return l, nil
}

// answerStatus writes the status to each who connects, one after the other, until the
// listener is closed.
func answerStatus(l net.Listener, status func() any) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if b, err := json.Marshal(status()); err == nil {
			// From now on: the daemon may have been busy for longer than that, and is
			// not to blame who asks for it.
			conn.SetDeadline(time.Now().Add(answerTime))
			conn.Write(append(b, '\n'))
		}
		conn.Close()
	}
}

// AskStatus returns the status, as JSON, of the daemon behind a socket. If nobody answers,
// who is the name of that daemon in the error.
func AskStatus(ctx context.Context, path, who string) ([]byte, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("status: %w; is %s running in this network namespace? (--socket names another's)", err, who)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(askTime))
	b, err := io.ReadAll(io.LimitReader(conn, maxStatus))
	if err == nil && !json.Valid(b) {
		err = fmt.Errorf("%s: not a status: %q", path, b[:min(len(b), 40)])
	}
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	return bytes.TrimSpace(b), nil
}
