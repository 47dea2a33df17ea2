package kernel

import (
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Home is a network namespace in which a program was attached. When it attaches a program,
// the kernel reads an interface index in the calling thread's namespace, not in that of a
// netlink socket.
type Home struct {
	ns       netns.NsHandle
	dev, ino uint64
}

// OpenHome opens the calling thread's namespace.
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

// Do runs f there. It needs no privilege if the thread is there already.
func (h Home) Do(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var st unix.Stat_t
	if unix.Stat("/proc/thread-self/ns/net", &st) == nil && st.Dev == h.dev && st.Ino == h.ino {
		return f()
	}
	return Within(h.ns, f)
}

// Close closes the namespace's handle.
func (h *Home) Close() {
	if h.ns.IsOpen() {
		h.ns.Close()
	}
}
