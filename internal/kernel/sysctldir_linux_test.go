package kernel

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/exitcode"
)

// Settings are read and written where the variable says, and nowhere else.
func TestSysctl_otherDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(SysctlVariable, dir)
	file := filepath.Join(dir, "net", "ipv4", "tcp_min_rtt_wlen")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("300\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	was, wrote, err := SetSysctl(Sysctl{Key: "net.ipv4.tcp_min_rtt_wlen", Value: "7"})
	if was != "300" || !wrote || err != nil {
		t.Errorf("%q, %v, %v", was, wrote, err)
	}
	if v, err := ReadSysctl("net.ipv4.tcp_min_rtt_wlen"); v != "7" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	_, _, err = SetSysctl(Sysctl{Key: "net.ipv4.tcp_none", Value: "7"})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir+"/net/ipv4/tcp_none") {
		t.Errorf("a missing one: %v", err)
	}
}

// What is named must be the kernel's, as files of any other kind would be written without effect.
func TestCheckSysctlDir(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{"": "", "/proc/sys": "", dir: "not of the proc file system", filepath.Join(dir, "none"): "no such file"} {
		t.Setenv(SysctlVariable, name)
		if name == dir {
			if err := os.Mkdir(filepath.Join(dir, "net"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		err := CheckSysctlDir()
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", name, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || exitcode.Of(err) != exitcode.Usage):
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}
