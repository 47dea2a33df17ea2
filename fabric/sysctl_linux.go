package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// errNoSetting is about a setting that is missing and must not be.
var errNoSetting = errors.New("this kernel does not have it")

// setSysctls writes those that differ, in the network namespace of the calling
// thread.
func (r *Report) setSysctls(settings []Sysctl) (changed int, err error) {
	for _, s := range settings {
		was, wrote, err := setSysctl(s)
		switch {
		case errors.Is(err, fs.ErrNotExist) && s.Optional:
			r.Notes = append(r.Notes, fmt.Sprintf("this kernel has no %s", s.Key))
			continue
		case errors.Is(err, fs.ErrNotExist):
			return changed, fmt.Errorf("sysctl %s: %w", s.Key, errNoSetting)
		case errors.Is(err, unix.EROFS):
			return changed, fmt.Errorf("sysctl %s=%s: /proc/sys is read-only here (a container?); set it from outside or run privileged", s.Key, s.Value)
		case err != nil:
			return changed, explain(fmt.Errorf("sysctl -w %s=%s: %w", s.Key, s.Value, err))
		}
		if wrote {
			changed++
			r.Did = append(r.Did, fmt.Sprintf("set %s to %s, which was %s", s.Key, s.Value, was))
		}
	}
	return changed, nil
}

// applySysctls is setSysctls that counts what it has changed.
func (r *Report) applySysctls(settings []Sysctl) error {
	n, err := r.setSysctls(settings)
	r.Changed += n
	return err
}

func setSysctl(s Sysctl) (was string, wrote bool, err error) {
	path := "/proc/sys/" + strings.ReplaceAll(s.Key, ".", "/")
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

// sameSetting compares values, which the kernel writes in its own way: 0x37 as
// 55, lists with tabs.
func sameSetting(a, b string) bool {
	if x, err := strconv.ParseInt(strings.TrimSpace(a), 0, 64); err == nil {
		y, err := strconv.ParseInt(strings.TrimSpace(b), 0, 64)
		return err == nil && x == y
	}
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}
