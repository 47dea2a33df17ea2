package congestion

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package congestion -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb dctcp bpf/dctcp.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

const needs = "congestion control " + Name + ": eBPF congestion control by a link, as of Linux 6.4, is needed (kernel options BPF_JIT, DEBUG_INFO_BTF)"

// Registration keeps a congestion control of the name Name in the kernel.
type Registration struct{ link link.Link }

// Register brings the congestion control, or has a part in what another process has brought:
// it goes with the last Registration. It needs root, or CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN
// and CAP_SYS_ADMIN.
func Register() (*Registration, error) {
	for _, c := range []struct {
		number int
		name   string
	}{{unix.CAP_BPF, "CAP_BPF"}, {unix.CAP_PERFMON, "CAP_PERFMON"}, {unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}} {
		if err := kernel.RequireCapability(c.number, c.name); err != nil {
			return nil, fmt.Errorf("congestion control %s: %w", Name, err)
		}
	}
	if _, err := os.Stat(kernelTypes); err != nil {
		return nil, fmt.Errorf("%s: the kernel does not describe its types: %w", needs, err)
	}
	// The other one may end between the two steps, or a third one begin.
	const tries = 10
	for range tries {
		if r, err := join(); r != nil || err != nil {
			return r, err
		}
		r, err := bring()
		if !errors.Is(err, unix.EEXIST) {
			return r, err
		}
	}
	return nil, fmt.Errorf("congestion control %s: the kernel has one of this name, which is not weft's: remove it (bpftool struct_ops unregister name %s)", Name, Name)
}

// kernelTypes is the kernel's BTF.
const kernelTypes = "/sys/kernel/btf/vmlinux"

func bring() (*Registration, error) {
	spec, err := loadDctcp()
	if err != nil {
		return nil, err
	}
	var o dctcpObjects
	if err := kernel.Load(spec, &o, needs); err != nil {
		return nil, err
	}
	defer o.Close() // the link has them
	l, err := link.AttachStructOps(link.StructOpsOptions{Map: o.WeftDctcp})
	switch {
	case errors.Is(err, unix.EEXIST):
		return nil, err
	case kernel.NotTheKernels(err):
		return nil, kernel.Explain(fmt.Errorf("congestion control %s: %w", Name, err))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", needs, err)
	}
	return &Registration{l}, nil
}

// join finds what another process has brought; nil if nobody has.
func join() (*Registration, error) {
	var it link.Iterator
	defer it.Close()
	for it.Next() {
		info, err := it.Link.Info()
		if err != nil || info.Type != link.StructOpsType || !brings(it.Link) {
			continue
		}
		return &Registration{it.Take()}, nil
	}
	if err := it.Err(); err != nil {
		return nil, kernel.Explain(fmt.Errorf("congestion control %s: %w", Name, err))
	}
	return nil, nil
}

// brings reports whether a link is that of a congestion control of our name. What the
// library knows of such a link leaves out its map, whose name it is.
func brings(l link.Link) bool {
	id, ok := mapOf(l)
	if !ok {
		return false
	}
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return false
	}
	defer m.Close()
	info, err := m.Info()
	return err == nil && info.Name == Name
}

func mapOf(l link.Link) (ebpf.MapID, bool) {
	holder, ok := l.(interface{ FD() int })
	if !ok {
		return 0, false
	}
	f, err := os.Open(fmt.Sprintf("/proc/self/fdinfo/%d", holder.FD()))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), "map_id:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 32)
			return ebpf.MapID(n), err == nil && n != 0
		}
	}
	return 0, false
}

// Close ends this process's part.
func (r *Registration) Close() error {
	if r == nil {
		return nil
	}
	return r.link.Close()
}

// variable passes the descriptor of a Registration to the program that is executed next.
const variable = "WEFT_CONGESTION_CONTROL"

// Leave gives the Registration to the program that this process executes next. It returns a
// variable of that one's environment, in which Take finds it. The Registration is of no more
// use then.
func (r *Registration) Leave() (env string, err error) {
	defer r.Close()
	holder, ok := r.link.(interface{ FD() int })
	if !ok {
		return "", errors.New("congestion control: its link has no descriptor")
	}
	fd, err := unix.FcntlInt(uintptr(holder.FD()), unix.F_DUPFD, 3) // without O_CLOEXEC
	if err != nil {
		return "", fmt.Errorf("congestion control: %w", err)
	}
	return fmt.Sprintf("%s=%d", variable, fd), nil
}

// Take takes over what Leave has left to this process, nil if nothing, and removes the
// variable from the environment.
func Take() *Registration {
	fd, err := strconv.Atoi(os.Getenv(variable))
	os.Unsetenv(variable)
	if err != nil {
		return nil
	}
	unix.CloseOnExec(fd)
	l, err := link.NewFromFD(fd)
	if err != nil {
		return nil
	}
	if info, err := l.Info(); err != nil || info.Type != link.StructOpsType {
		l.Close()
		return nil
	}
	return &Registration{l}
}
