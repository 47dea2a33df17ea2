package hostsetup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// What is kept open reads as what is opened anew: after others have written it, after the device
// has been renamed, and after another device has taken its name.
func TestKeptSettings_readAsOpenedAnew(t *testing.T) {
	kerneltest.NeedRoot(t)
	ns := kerneltest.Namespace(t, "kept")
	var kept keptSettings
	defer kept.close()
	key := confKey("d0", "rp_filter")
	for _, step := range []string{
		"ip link add d0 type veth peer name e0; sysctl -qw net.ipv4.conf.d0.rp_filter=1",
		"sysctl -qw net.ipv4.conf.d0.rp_filter=2",
		"true",
		"ip link set d0 name d1; ip link add d0 type veth peer name e1; sysctl -qw net.ipv4.conf.d0.rp_filter=1 net.ipv4.conf.d1.rp_filter=0",
		"ip link del d0; ip link add d0 type veth peer name e1; sysctl -qw net.ipv4.conf.d0.rp_filter=2",
	} {
		kerneltest.Shell(t, ns, step)
		in(t, ns, func() error {
			want, err := readSetting(key)
			if err != nil {
				return err
			}
			if got, err := kept.read(key); err != nil || got != want {
				t.Errorf("after %q: %q, %v; want %q", step, got, err, want)
			}
			return nil
		})
		if len(kept) != 1 {
			t.Errorf("after %q: %d files are open", step, len(kept))
		}
	}
	kerneltest.Shell(t, ns, "ip link del d0")
	in(t, ns, func() error {
		if _, err := kept.read(key); !errors.Is(err, fs.ErrNotExist) || len(kept) != 0 {
			t.Errorf("without a device: %v, %d files", err, len(kept))
		}
		return nil
	})
	in(t, ns, func() error {
		for range 3 {
			for _, key := range []string{"net.ipv4.tcp_min_rtt_wlen", "net.ipv4.tcp_tso_rtt_log"} {
				if _, err := kept.read(key); err != nil {
					return err
				}
			}
		}
		return nil
	})
	first, other := kept["net.ipv4.tcp_min_rtt_wlen"], kept["net.ipv4.tcp_tso_rtt_log"]
	if len(kept) != 2 || !isOpen(first) || !isOpen(other) {
		t.Errorf("%v are open", kept)
	}
	if kept.keep([]kernel.Sysctl{{Key: "net.ipv4.tcp_tso_rtt_log"}}); len(kept) != 1 || isOpen(first) || !isOpen(other) {
		t.Errorf("one is kept: %v, and the other is open: %t", kept, isOpen(first))
	}
	if kept.close(); len(kept) != 0 || isOpen(other) {
		t.Errorf("closed: %v", kept)
	}
}

// isOpen reports whether a descriptor is of a setting's file.
func isOpen(fd int) bool {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return err == nil && strings.HasPrefix(path, "/proc/sys/")
}

// What nobody has changed is not written at the end: /proc/sys may be read-only, and set from
// outside.
func TestSavedValue_restoreWritesWhatDiffers(t *testing.T) {
	kerneltest.NeedRoot(t)
	ns := kerneltest.Namespace(t, "restored")
	const key = "net.ipv4.tcp_min_rtt_wlen"
	in(t, ns, func() error {
		now, err := readSetting(key)
		if err != nil {
			return err
		}
		for _, c := range []struct{ former, set, want string }{
			{now, now, now}, // nobody has changed it
			{"17", now, "17"},
			{now, "16", "17"}, // somebody else has
		} {
			written := 0
			put := func(key, value string) error { written++; return putSetting(key, value) }
			before, err := readSetting(key)
			if err != nil {
				return err
			}
			err = savedValue{key, c.former, c.set}.restore(put)
			if got, err2 := readSetting(key); err != nil || err2 != nil || got != c.want || (written > 0) != (before != c.want) {
				t.Errorf("%+v: %s, written %d times, %v, %v", c, got, written, err, err2)
			}
		}
		return nil
	})
}
