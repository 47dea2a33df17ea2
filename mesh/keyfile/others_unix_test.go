//go:build unix

package keyfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A group may read what is root's, for another user alone.
func TestOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, nil, 0o440); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	roots := st.Sys().(*syscall.Stat_t).Uid == 0
	for user, want := range map[int]fs.FileMode{0: 0o077, 1000: 0o077} {
		if roots && user != 0 {
			want = 0o037
		}
		if got := others(st, user); got != want {
			t.Errorf("user %d, a file of root's %v: %v, want %v", user, roots, got, want)
		}
	}
}
