package kernel

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func mayMount(t *testing.T) {
	t.Helper()
	if err := RequireCapability(unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"); err != nil {
		t.Skip(err)
	}
}

// device tells instances of a file system apart.
func device(t *testing.T, dir string) uint64 {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Stat(dir+"/sys", &s); err != nil {
		t.Fatal(err)
	}
	return s.Dev
}

// Settings are not looked for in /proc, whose cache grows with each network namespace that
// there ever was, and no instance lives for ever.
func TestOwnProc_isReplaced(t *testing.T) {
	mayMount(t)
	var p ownProc
	var devices []uint64
	for i := range 2*renewAfter + 1 {
		dir, done := p.use()
		if i%renewAfter == 0 {
			devices = append(devices, device(t, dir))
		}
		done()
	}
	defer unix.Close(p.fd)
	if shared := device(t, "/proc"); devices[0] == shared || devices[1] == shared {
		t.Errorf("devices %v, and /proc is %d", devices, shared)
	}
	if devices[0] == devices[1] || devices[1] == devices[2] {
		t.Errorf("devices %v: not replaced after %d uses", devices, renewAfter)
	}
}

// Where /proc/sys is read-only, as in a container, nothing is written around that.
func TestOwnProc_respectsReadOnly(t *testing.T) {
	mayMount(t)
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and ends with its thread, which has mounts of its own
		failed <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
				return err
			}
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return err
			}
			if err := unix.Mount("/proc/sys", "/proc/sys", "", unix.MS_BIND, ""); err != nil {
				return err
			}
			if err := unix.Mount("", "/proc/sys", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				return err
			}
			var p ownProc
			dir, done := p.use()
			defer done()
			if dir != "/proc" {
				return errors.New("settings are looked for in " + dir)
			}
			return nil
		}()
	}()
	if err := <-failed; err != nil {
		t.Error(err)
	}
}

const martians = "/proc/sys/net/ipv4/conf/default/log_martians"

func TestSetSysctl_errorNamesTheFile(t *testing.T) {
	_, _, err := SetSysctl(Sysctl{Key: "net.ipv4.nosuch", Value: "1"})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/proc/sys/net/ipv4/nosuch") || strings.Contains(err.Error(), "self") {
		t.Errorf("error %v", err)
	}
}

// A setting is that of the thread's network namespace.
func TestSetSysctl_inANamespace(t *testing.T) {
	mayMount(t)
	type result struct {
		was, now string
		wrote    bool
		err      error
	}
	got := make(chan result)
	go func() {
		runtime.LockOSThread() // and ends with its thread, which has a namespace of its own
		var r result
		if r.err = unix.Unshare(unix.CLONE_NEWNET); r.err == nil {
			r.was, r.wrote, r.err = SetSysctl(Sysctl{Key: "net.ipv4.conf.default.log_martians", Value: "1"})
			b, _ := os.ReadFile(martians)
			r.now = strings.TrimSpace(string(b))
		}
		got <- r
	}()
	read := func() string {
		b, err := os.ReadFile(martians)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	before := read()
	r := <-got
	if r.err != nil || !r.wrote || r.was != "0" || r.now != "1" {
		t.Errorf("%+v, want it to have been 0, and to be 1", r)
	}
	if after := read(); after != before {
		t.Errorf("this namespace had %s and has %s", before, after)
	}
}
