package hostprog

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"weft/internal/qcn"
)

// paceVariable passes the descriptors of KeepPacer to the program that is executed next.
const paceVariable = "WEFT_PACER"

// KeepPacer loads what a Pacer is made of, for the program that this process executes next,
// which may have fewer privileges. It returns a variable of that one's environment, in which
// TakePacer finds it. It needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN.
func KeepPacer() (variable string, err error) {
	p, err := loadPacer()
	if err != nil {
		return "", err
	}
	defer p.close()
	var words []string
	for _, fd := range []int{p.iter.FD(), p.paced.FD(), p.globals.FD()} {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 3) // without O_CLOEXEC
		if err != nil {
			return "", fmt.Errorf("pacer: %w", err)
		}
		words = append(words, strconv.Itoa(dup))
	}
	return paceVariable + "=" + strings.Join(words, ","), nil
}

// keptPacer is what this process has of KeepPacer: an iterator and two maps.
type keptPacer struct {
	sync.Mutex
	fds []int // none: nothing
}

// inherited stays for the whole run, so that OpenPacer can be tried again.
var inherited keptPacer

// TakePacer takes over what KeepPacer has left to this process, if anything, and removes the
// variable from the environment. What is no list of three descriptors counts as nothing.
func TakePacer() {
	text := os.Getenv(paceVariable)
	os.Unsetenv(paceVariable)
	words := strings.Split(text, ",")
	if len(words) != 3 {
		return
	}
	var fds []int
	for _, word := range words {
		fd, err := strconv.Atoi(word)
		if err != nil {
			return
		}
		fds = append(fds, fd)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	inherited.take(fds)
}

// take has the descriptors instead of those of before, which are closed.
func (k *keptPacer) take(fds []int) {
	k.Lock()
	defer k.Unlock()
	for _, fd := range k.fds {
		unix.Close(fd)
	}
	k.fds = fds
}

// pacer returns a Pacer of copies of the descriptors, nil if there are none.
func (k *keptPacer) pacer() (*Pacer, error) {
	k.Lock()
	defer k.Unlock()
	if len(k.fds) == 0 {
		return nil, nil
	}
	var fds []int
	for i, fd := range k.fds {
		fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			for _, fd := range fds {
				unix.Close(fd)
			}
			return nil, fmt.Errorf("pacer: descriptor %d: %w", k.fds[i], err)
		}
		fds = append(fds, fd)
	}
	p := &Pacer{flows: make(map[qcn.Flow]bool)}
	l, err := link.NewFromFD(fds[0])
	if err == nil {
		var ok bool
		if p.iter, ok = l.(*link.Iter); !ok {
			err = errors.Join(fmt.Errorf("descriptor %d is no iterator", k.fds[0]), l.Close())
		}
	}
	var err2, err3 error // each takes its descriptor, also where it fails
	p.paced, err2 = ebpf.NewMapFromFD(fds[1])
	p.globals, err3 = ebpf.NewMapFromFD(fds[2])
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, errors.Join(fmt.Errorf("pacer: %w", err), p.close())
	}
	return p, nil
}
