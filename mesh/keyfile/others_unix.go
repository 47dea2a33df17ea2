//go:build unix

package keyfile

import (
	"io/fs"
	"syscall"
)

// others are the permissions that a private file must not give, for a process of this user. A group may read root's file:
// so Kubernetes gives a Secret to a user who is not root (fsGroup).
func others(st fs.FileInfo, user int) fs.FileMode {
	if s, ok := st.Sys().(*syscall.Stat_t); ok && s.Uid == 0 && user != 0 {
		return 0o037
	}
	return 0o077
}
