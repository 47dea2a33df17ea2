package link

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// errGone is what Read returns when somebody has removed the interface.
var errGone = errors.New("the interface is gone: open the device again when it is back")

// super says whether a device may be given super-segments. It becomes false for good with
// the first one that the kernel refuses. A driver, a kernel or a program in the path can
// break offloads at run time, and a device that went on would lose every super-segment.
// It is safe for concurrent use.
type super struct {
	max     atomic.Int32
	refused atomic.Uint64
	why     atomic.Pointer[string]
}

// note records why less was got than asked for; the first reason stays.
func (s *super) note(why string) { s.why.CompareAndSwap(nil, &why) }

func (s *super) refuse(errno unix.Errno) {
	s.refused.Add(1)
	if s.max.Swap(0) > 0 {
		s.note(fmt.Sprintf("the kernel refused a super-segment: %v; sending packets one by one from now on", errno))
	}
}

func (s *super) fill(o Offloads) Offloads {
	o.Refused = s.refused.Load()
	if why := s.why.Load(); why != nil {
		o.Fallback = *why
	}
	return o
}
