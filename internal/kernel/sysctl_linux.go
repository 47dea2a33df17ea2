package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrNoSetting says that a required setting is missing.
var ErrNoSetting = errors.New("this kernel does not have it")

// SetSysctl sets a value that differs, in the network namespace of the calling thread, and
// returns the former value.
func SetSysctl(s Sysctl) (was string, wrote bool, err error) {
	dir, done := sysctlDir()
	defer done()
	name := strings.ReplaceAll(s.Key, ".", "/")
	defer func() {
		if e := (*os.PathError)(nil); errors.As(err, &e) {
			e.Path = filepath.Join(SysctlDir(), name) // which people know
		}
	}()
	path := filepath.Join(dir, name)
	have, err := os.ReadFile(path)
	if err != nil {
		return "", false, err
	}
	was = strings.Join(strings.Fields(string(have)), " ")
	if sameSetting(was, s.Value) {
		return was, false, nil
	}
	return was, true, os.WriteFile(path, []byte(s.Value), 0)
}

// ReadSysctl returns a setting's value in the network namespace of the calling thread.
func ReadSysctl(key string) (string, error) {
	dir, done := sysctlDir()
	defer done()
	have, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(key, ".", "/")))
	return strings.Join(strings.Fields(string(have)), " "), err
}

// sameSetting compares values, which the kernel writes in its own way: 0x37 as
// 55, lists with tabs.
func sameSetting(a, b string) bool {
	if x, err := strconv.ParseInt(strings.TrimSpace(a), 0, 64); err == nil {
		y, err := strconv.ParseInt(strings.TrimSpace(b), 0, 64)
		return err == nil && x == y
	}
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}
