package kernel

import (
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Home is a network namespace in which something was attached. The kernel takes
// interface indexes for those of the calling thread's namespace where programs are
// attached, whatever namespace a netlink socket is of.
type Home struct {
	ns       netns.NsHandle
	dev, ino uint64
}

// OpenHome is that of the calling thread.
func OpenHome() (h Home, err error) {
	if h.ns, err = netns.Get(); err != nil {
		return h, Explain(fmt.Errorf("network namespace: %w", err))
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(h.ns), &st); err != nil {
		h.Close()
		return h, fmt.Errorf("network namespace: %w", err)
	}
	h.dev, h.ino = st.Dev, st.Ino
	return h, nil
}

// Do runs f there. Who is there already needs no privilege for that.
func (h Home) Do(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var st unix.Stat_t
	if unix.Stat("/proc/thread-self/ns/net", &st) == nil && st.Dev == h.dev && st.Ino == h.ino {
		return f()
	}
	return Within(h.ns, f)
}

// Close lets go of the namespace.
func (h *Home) Close() {
	if h.ns.IsOpen() {
		h.ns.Close()
	}
}
