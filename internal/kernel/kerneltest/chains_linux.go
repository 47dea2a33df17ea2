package kerneltest

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel/internal/seam"
)

// ErrNoTCX means that the kernel has no TCX, or that weft acts so (WithoutTCX).
var ErrNoTCX = errors.New("the kernel has no TCX (Linux 6.6)")

// TCX lists the programs at a hook of a device by TCX, in the order in which they run. The
// namespace is the calling thread's.
func TCX(port netlink.Link, hook ebpf.AttachType) (ids []ebpf.ProgramID, err error) {
	if seam.OnlyClsact.Load() {
		return nil, ErrNoTCX
	}
	r, err := link.QueryPrograms(link.QueryOptions{Target: port.Attrs().Index, Attach: hook})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported) {
		return nil, ErrNoTCX
	}
	if err != nil {
		return nil, err
	}
	for _, p := range r.Programs {
		ids = append(ids, p.ID)
	}
	return ids, nil
}

// WithoutTCX makes weft act as on a kernel without TCX until the end of the test, or until
// end is called.
func WithoutTCX(t testing.TB) (end func()) {
	end = func() { seam.OnlyClsact.Store(false) }
	t.Cleanup(end)
	seam.OnlyClsact.Store(true)
	return end
}

// ForgetPrograms makes this process forget what it has attached, as if another process had.
func ForgetPrograms() { seam.Forget() }

// Clsact is the clsact qdisc of a device, to add or delete.
func Clsact(port netlink.Link) *netlink.Clsact {
	return &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: port.Attrs().Index, Parent: netlink.HANDLE_CLSACT, Handle: netlink.MakeHandle(0xffff, 0)}}
}

// ClsactFilter returns the clsact filter with a name at HANDLE_MIN_INGRESS or
// HANDLE_MIN_EGRESS of a device, nil if there is none. The namespace is the calling
// thread's.
func ClsactFilter(port netlink.Link, parent uint32, name string) (*netlink.BpfFilter, error) {
	filters, err := netlink.FilterList(port, parent)
	if errors.Is(err, unix.EINVAL) {
		return nil, nil // no such qdisc
	}
	for _, f := range filters {
		if bpf, ok := f.(*netlink.BpfFilter); ok && bpf.Name == name {
			return bpf, nil
		}
	}
	return nil, err
}
