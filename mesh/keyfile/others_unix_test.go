//go:build unix

package keyfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A group may read what is root's, and nobody else anything.
func TestOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, nil, 0o440); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	want := fs.FileMode(0o077)
	if st.Sys().(*syscall.Stat_t).Uid == 0 {
		want = 0o037
	}
	if got := others(st); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := Read(path); (err == nil || strings.Contains(err.Error(), "others than its owner")) == (want == 0o037) {
		t.Errorf("of mode 0440: %v", err)
	}
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "others than its owner") {
		t.Errorf("of mode 0444: %v", err)
	}
}
