package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// NetnsDir is where ip netns looks for named network namespaces.
const NetnsDir = "/run/netns"

// onThread runs f on an OS thread of its own that may change its network
// namespace: the thread is put back afterwards, or thrown away.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := netns.Get()
		if err != nil {
			runtime.UnlockOSThread()
			done <- Explain(err)
			return
		}
		err = f()
		// A goroutine that ends locked takes its thread with it.
		if netns.Set(home) == nil {
			runtime.UnlockOSThread()
		}
		home.Close()
		done <- err
	}()
	return <-done
}

// Within runs f on a thread in the network namespace ns. Goroutines that
// f starts are not in it; sockets that f opens are, and stay there.
func Within(ns netns.NsHandle, f func() error) error {
	return onThread(func() error {
		if err := netns.Set(ns); err != nil {
			return Explain(fmt.Errorf("enter the network namespace: %w", err))
		}
		return f()
	})
}

// OpenNamespace opens a named network namespace, which the caller closes.
func OpenNamespace(name string) (netns.NsHandle, error) {
	ns, err := netns.GetFromName(name)
	if err != nil {
		return ns, Explain(fmt.Errorf("network namespace %s: %w", name, err))
	}
	return ns, nil
}

// InNamespace is Within for a namespace by name.
func InNamespace(name string, f func() error) error {
	ns, err := OpenNamespace(name)
	if err != nil {
		return err
	}
	defer ns.Close()
	return Within(ns, f)
}

// CreateNamespace makes a named network namespace, and runs setup in it. On
// error it leaves none.
func CreateNamespace(name string, setup func() error) error {
	err := onThread(func() error {
		path := filepath.Join(NetnsDir, name)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o444)
		if err != nil {
			return err
		}
		f.Close()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if err := unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), path, "bind", unix.MS_BIND, ""); err != nil {
			return err
		}
		return setup()
	})
	if err != nil {
		if !errors.Is(err, fs.ErrExist) {
			DeleteNamespace(name)
		}
		return Explain(fmt.Errorf("create network namespace %s: %w", name, err))
	}
	return nil
}

// DeleteNamespace removes the name. The namespace itself lives on as long as
// a process is in it.
func DeleteNamespace(name string) error {
	path := filepath.Join(NetnsDir, name)
	for {
		err := unix.Unmount(path, unix.MNT_DETACH)
		if errors.Is(err, unix.EINVAL) { // not, or no longer, a mount point
			break
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return Explain(fmt.Errorf("delete network namespace %s: %w", name, err))
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete network namespace %s: %w", name, err)
	}
	return nil
}

// Namespaces lists the named network namespaces that start with prefix.
func Namespaces(prefix string) ([]string, error) {
	entries, err := os.ReadDir(NetnsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// PrepareNetnsDir makes the directory a shared mount of its own, as ip netns add
// does. If ip did so later, it would hide the earlier mounts, and they could not
// be removed.
func PrepareNetnsDir() error {
	if err := os.MkdirAll(NetnsDir, 0o755); err != nil {
		return Explain(err)
	}
	err := unix.Mount("", NetnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if errors.Is(err, unix.EINVAL) { // not a mount point yet
		if err = unix.Mount(NetnsDir, NetnsDir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = unix.Mount("", NetnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
		}
	}
	if err != nil {
		return Explain(fmt.Errorf("mount %s: %w", NetnsDir, err))
	}
	return nil
}
