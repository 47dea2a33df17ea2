package link

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// tunAny reads several queues of a TUN as one device. It has an epoll instance of
// them, and Go's own poller waits for that. So a waiting goroutine costs no
// thread, and close ends the wait.
type tunAny struct {
	queues []*TUNQueue
	file   *os.File // the epoll instance
	raw    syscall.RawConn
	ready  func(fd uintptr) bool

	mu    sync.Mutex // held by who reads
	first int        // the queue whose turn it is to be read first
}

func newTUNAny(queues []*TUNQueue) (*tunAny, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or os would not poll it
		unix.Close(fd)
		return nil, fmt.Errorf("epoll: %w", err)
	}
	a := &tunAny{queues: queues, file: os.NewFile(uintptr(fd), "queues of a TUN")}
	for _, q := range queues {
		var refused error
		err := q.raw.Control(func(queue uintptr) {
			refused = unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, int(queue), &unix.EpollEvent{Events: unix.EPOLLIN})
		})
		if err = errors.Join(err, refused); err != nil {
			a.file.Close()
			return nil, fmt.Errorf("epoll: %w", err)
		}
	}
	if a.raw, err = a.file.SyscallConn(); err != nil {
		a.file.Close()
		return nil, fmt.Errorf("epoll: %w", err)
	}
	a.ready = func(fd uintptr) bool {
		var events [1]unix.EpollEvent
		n, err := unix.EpollWait(int(fd), events[:], 0)
		return n != 0 || err != nil && !errors.Is(err, unix.EINTR)
	}
	return a, nil
}

// read waits for packets in any queue and takes what there is, of each queue in
// its order. The queues take turns at being the first, so that none starves.
func (a *tunAny) read(bufs [][]byte, sizes []int, offset int, super bool) (n int, err error) {
	if !haveRoom(bufs, offset) {
		return 0, errNoRoom
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		open := false
		for i := range a.queues {
			if n == len(bufs) {
				break
			}
			q := a.queues[(a.first+i)%len(a.queues)]
			if q.closed.Load() {
				continue
			}
			k, err := q.readBy(q.rd.once, bufs[n:], sizes[n:], offset, super)
			n += k
			if err != nil && !errors.Is(err, net.ErrClosed) {
				return n, err
			}
			open = open || err == nil
		}
		a.first++
		if n > 0 {
			return n, nil
		}
		if !open {
			return 0, net.ErrClosed
		}
		if err := a.raw.Read(a.ready); err != nil {
			if errors.Is(err, os.ErrClosed) {
				err = net.ErrClosed
			}
			return 0, err
		}
	}
}

func (a *tunAny) close() error { return a.file.Close() }
