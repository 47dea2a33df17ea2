package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// RunDir holds the state, the locks and the sockets of labs and daemons. A reboot
// removes it, as it removes the namespaces.
const RunDir = "/run/weft"

// NamespaceDir returns the directory that a kind of daemon, such as "host", has in
// RunDir for the calling thread's network namespace. It may not exist.
func NamespaceDir(kind string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return "", fmt.Errorf("network namespace: %w", err)
	}
	// Labs have no dash in their names, so none is called like this.
	return filepath.Join(RunDir, fmt.Sprintf("%s-%d", kind, st.Ino)), nil
}

// MakeNamespaceDir makes that of NamespaceDir and gives it to a user, unlike RunDir, and
// with it those of files that an earlier run has left in it. Who runs as that user
// already calls it with uid -1, which leaves the owner as it is.
func MakeNamespaceDir(kind string, uid, gid int, files ...string) (string, error) {
	dir, err := NamespaceDir(kind)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("state directory: %w; make %s for this user, or begin as root", err, RunDir)
	}
	if uid < 0 {
		return dir, nil
	}
	for _, name := range append([]string{""}, files...) {
		err := os.Lchown(filepath.Join(dir, name), uid, gid)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("state directory: %w", err)
		}
	}
	return dir, nil
}
