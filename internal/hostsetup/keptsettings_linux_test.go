package hostsetup

import (
	"errors"
	"io/fs"
	"os"
	"testing"

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
	before := openFiles(t)
	in(t, ns, func() error {
		for range 3 {
			if _, err := kept.read("net.ipv4.tcp_min_rtt_wlen"); err != nil {
				return err
			}
		}
		return nil
	})
	if kept.close(); len(kept) != 0 || openFiles(t) != before {
		t.Errorf("%d files of %d are left open", openFiles(t), before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
