// Package statussocket is how a daemon tells what it does, and how others ask: a
// socket of the file system, and JSON to each who connects.
package statussocket

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

// Off in place of a path is for a daemon that tells nobody.
const Off = "off"

// answerTime bounds how long one who asks is waited for, once there is an answer.
const answerTime = time.Second

// askTime bounds how long a daemon is waited for. It may be about to mend what the
// kernel takes seconds for, while others change its network, too.
const askTime = 30 * time.Second

// maxStatus bounds an answer, in bytes.
const maxStatus = 16 << 20

// Serve opens a socket, in the place of one that a crash left, and answers there
// from a goroutine of its own with what status returns, until the closer is closed,
// which removes the socket. All may read it: counters are no secret.
func Serve(path string, status func() any) (io.Closer, error) {
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
	go answer(l, status)
	return l, nil
}

// answer writes the status to each who connects, one after the other, until the
// listener is closed.
func answer(l net.Listener, status func() any) {
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

// Ask returns the status, as JSON, of the daemon behind a socket; who names that
// daemon in the error where nobody answers.
func Ask(ctx context.Context, path, who string) ([]byte, error) {
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
