package wire

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// poll waits for any of several descriptors. It is an epoll instance for which
// Go's own poller waits. So a waiting goroutine costs no thread, and deadlines
// and Close work as for any file.
type poll struct {
	file   *os.File
	raw    syscall.RawConn
	take   func(fd uintptr) bool // a closure, made once
	events []unix.EpollEvent
	n      int
	err    error
}

func newPoll(descriptors int) (*poll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(fd, true) // or os would not poll it
	}
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	p := &poll{file: os.NewFile(uintptr(fd), "topology updates"), events: make([]unix.EpollEvent, descriptors)}
	p.take = func(fd uintptr) bool {
		for {
			p.n, p.err = unix.EpollWait(int(fd), p.events, 0)
			if !errors.Is(p.err, unix.EINTR) {
				return p.n != 0 || p.err != nil
			}
		}
	}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		p.file.Close()
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return p, nil
}

// add lets wait return tag when a descriptor can be read.
func (p *poll) add(fd, tag int) (err error) {
	p.control(func(epoll int) {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(tag)})
	})
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

func (p *poll) control(f func(epoll int)) { p.raw.Control(func(fd uintptr) { f(int(fd)) }) }

// wait returns the tags of what can be read, none at the deadline, and an error
// after close.
func (p *poll) wait(deadline time.Time) ([]unix.EpollEvent, error) {
	p.n, p.err = 0, nil
	err := p.file.SetReadDeadline(deadline)
	if err == nil {
		err = p.raw.Read(p.take)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// Once more: who has been kept from running for long must take what came
		// in time before he looks at the clock.
		err = p.raw.Control(func(fd uintptr) { p.take(fd) })
	}
	switch {
	case err != nil:
		return nil, err
	case p.err != nil:
		return nil, fmt.Errorf("epoll: %w", p.err)
	}
	return p.events[:p.n], nil
}

func (p *poll) close() error { return p.file.Close() }
