//go:build unix

package keyfile

import (
	"io/fs"
	"syscall"
)

// others are the permissions that a private file must not give. A group may read root's: so
// Kubernetes gives a Secret to a user who is not root (fsGroup), and a package its daemon's user.
func others(st fs.FileInfo) fs.FileMode {
	if s, ok := st.Sys().(*syscall.Stat_t); ok && s.Uid == 0 {
		return 0o037
	}
	return 0o077
}
