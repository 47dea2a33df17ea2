package switchd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"weft/internal/statussocket"
)

// runDir has a directory for each agent.
const runDir = "/run/weft"

// clockFile is in that directory what an agent remembers of the time.
const clockFile = "clock"

// statusDir is the directory of the agent of the calling thread's network
// namespace. It is the agent's user's, unlike the one that it is in.
func statusDir() (string, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return "", fmt.Errorf("network namespace: %w", err)
	}
	return filepath.Join(runDir, fmt.Sprintf("switch-%d", st.Ino)), nil
}

// StatusSocket is where the agent of the calling thread's network namespace
// answers when the configuration says nothing else.
func StatusSocket() (string, error) {
	dir, err := statusDir()
	return filepath.Join(dir, "status.sock"), err
}

// makeStatusDir makes statusDir and gives it to a user; -1 leaves it to whose it
// is.
func makeStatusDir(uid, gid int) error {
	dir, err := statusDir()
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil || uid < 0 {
		return err
	}
	if err := os.Lchown(filepath.Join(dir, clockFile), uid, gid); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Lchown(dir, uid, gid)
}

// listen opens the status socket, in the place of one that a crash left; nil
// without one. Closing removes it; the directory, which may be empty then, stays.
func (d *daemon) listen() (io.Closer, error) {
	path := d.file.Status
	if path == statussocket.Off {
		return nil, nil
	}
	if path == "" {
		var err error
		if path, err = StatusSocket(); err == nil {
			err = makeStatusDir(-1, -1)
		}
		if err != nil {
			return nil, d.file.lines.Errorf("status", "%w", err)
		}
	}
	socket, err := statussocket.Serve(path, func() any { return d.status() })
	if err != nil {
		return nil, d.file.lines.Errorf("status", "%w", err)
	}
	return socket, nil
}
