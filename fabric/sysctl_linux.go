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

// setSysctls writes those that differ, in the network namespace of the calling
// thread.
func (r *Report) setSysctls(settings []Sysctl) (changed int, err error) {
	for _, s := range settings {
		wrote, err := setSysctl(s)
		switch {
		case errors.Is(err, fs.ErrNotExist) && s.Optional:
			r.Notes = append(r.Notes, fmt.Sprintf("this kernel has no %s", s.Key))
			continue
		case errors.Is(err, fs.ErrNotExist):
			return changed, fmt.Errorf("sysctl %s: this kernel does not have it", s.Key)
		case errors.Is(err, unix.EROFS):
			return changed, fmt.Errorf("sysctl %s=%s: /proc/sys is read-only here (a container?); set it from outside or run privileged", s.Key, s.Value)
		case err != nil:
			return changed, explain(fmt.Errorf("sysctl %s=%s: %w", s.Key, s.Value, err))
		}
		if wrote {
			changed++
		}
	}
	return changed, nil
}

func setSysctl(s Sysctl) (wrote bool, err error) {
	path := "/proc/sys/" + strings.ReplaceAll(s.Key, ".", "/")
	have, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	if sameSetting(string(have), s.Value) {
		return false, nil
	}
	return true, os.WriteFile(path, []byte(s.Value), 0)
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
