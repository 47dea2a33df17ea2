package schedulerlab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where there is no etcd the error says what to install.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := Check(); err == nil || !strings.Contains(err.Error(), "apt install etcd-server") {
		t.Errorf("without etcd: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etcd"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Check(); err != nil {
		t.Error(err)
	}
}
