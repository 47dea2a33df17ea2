package kernel

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

// Attachment is a program whose place is watched.
type Attachment struct {
	place Filter
	Link  netlink.Link
	Prog  *ebpf.Program
	ID    ebpf.ProgramID

	settled uint64      // revision of a TCX chain that was in order
	moves   []time.Time // to the head, within MoveWindow
}

// Two agents that both want to be first would move each other for ever.
const (
	maxMoves   = 20
	moveWindow = time.Minute
)

// NewAttachment takes over a program that will be attached to a device. On error it closes
// the program.
func NewAttachment(f Filter, link netlink.Link, prog *ebpf.Program) (a Attachment, err error) {
	a = Attachment{place: f, Link: link, Prog: prog}
	if a.ID, err = programID(prog); err != nil {
		prog.Close()
		return a, err
	}
	ownPrograms.hold(a.ID, prog)
	return a, nil
}

// Release closes the program, which stays attached.
func (a *Attachment) Release() {
	if a.Prog != nil {
		ownPrograms.close(a.ID)
		a.Prog = nil
	}
}

// Attach puts the program there, in place of another of weft's.
func (a *Attachment) Attach(h *netlink.Handle) error { return a.place.Attach(h, a.Link, a.Prog) }

// there reports whether the program is attached.
func (a *Attachment) there(h *netlink.Handle) (bool, error) {
	chain, err := a.place.chain(a.Link)
	if errors.Is(err, ErrUplinkGone) {
		return false, nil
	}
	if err == nil && chain.has(a.ID) {
		return true, nil
	}
	if err != nil && !errors.Is(err, errNoTCX) {
		return false, err
	}
	filter, err := a.place.inClsact(h, a.Link)
	return filter != nil && ebpf.ProgramID(filter.Id) == a.ID, err
}

// Detach removes the program, unless another is there by now, and says whether it
// was there.
func (a *Attachment) Detach(h *netlink.Handle) (was bool, err error) {
	was, err = a.there(h)
	if err != nil || !was {
		return was, err
	}
	return true, a.place.Detach(h, a.Link)
}

// Mend puts the program back where it should be, and describes what was wrong.
func (a *Attachment) mend(h *netlink.Handle, now time.Time) (mended []string, err error) {
	chain, err := a.place.chain(a.Link)
	if errors.Is(err, errNoTCX) {
		return a.mendClsact(h)
	}
	if err != nil {
		return nil, err
	}
	if !chain.has(a.ID) {
		if chain.find(a.place) != 0 {
			return nil, ErrReplaced
		}
		if err := a.Attach(h); err != nil {
			return nil, err
		}
		return []string{a.lost()}, nil
	}
	if chain.revision == a.settled {
		return nil, nil
	}
	foreign := chain.foreign(a.place, a.ID)
	if len(foreign) == 0 {
		a.settled = chain.revision
		return nil, nil
	}
	front := ForeignProgram{Hook: a.place.hook(), By: byTCX, ID: uint32(foreign[0]), Name: calledBy(foreign[0]), Front: true}
	if !a.mayMove(now) {
		return nil, fmt.Errorf("%s of %s: it came back in front %d times within a minute and is left there; what it ends the chain for, %s does not see: have it attached behind", front, a.Link.Attrs().Name, maxMoves, a.place.Name)
	}
	if err := a.Attach(h); err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("moved %s to the front at %s of %s, where %s stood", a.place.Name, a.place.hook(), a.Link.Attrs().Name, front.who())}, nil
}

// MendWith also mends the device's settings, nil for none, unless there is nothing left to
// mend.
func (a *Attachment) MendWith(s *Settings, h *netlink.Handle, now time.Time) (mended []string, err error) {
	mended, err = a.mend(h, now)
	if s == nil || errors.Is(err, ErrUplinkGone) || errors.Is(err, ErrReplaced) {
		return mended, err
	}
	more, err2 := s.mend(h, a.Link)
	return append(mended, more...), errors.Join(err, err2)
}

func (a *Attachment) mendClsact(h *netlink.Handle) (mended []string, err error) {
	filter, err := a.place.inClsact(h, a.Link)
	if err != nil {
		return nil, err
	}
	if filter != nil {
		if ebpf.ProgramID(filter.Id) != a.ID {
			return nil, ErrReplaced
		}
		return nil, nil
	}
	if err := a.Attach(h); err != nil {
		return nil, err
	}
	return []string{a.lost()}, nil
}

func (a *Attachment) lost() string {
	return fmt.Sprintf("attached %s at %s of %s again, where it was missing", a.place.Name, a.place.hook(), a.Link.Attrs().Name)
}

// MayMove counts a move to the head, unless there were too many of late.
func (a *Attachment) mayMove(now time.Time) bool {
	for len(a.moves) > 0 && now.Sub(a.moves[0]) >= moveWindow {
		a.moves = a.moves[1:]
	}
	if len(a.moves) >= maxMoves {
		return false
	}
	a.moves = append(a.moves, now)
	return true
}

// gone is ErrUplinkGone of a device.
func gone(port netlink.Link) error {
	return fmt.Errorf("%s (interface %d): %w", port.Attrs().Name, port.Attrs().Index, ErrUplinkGone)
}
