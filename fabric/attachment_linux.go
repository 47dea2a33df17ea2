package fabric

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

// attachment is a program at its place, which is watched.
type attachment struct {
	place tcFilter
	link  netlink.Link
	prog  *ebpf.Program
	id    ebpf.ProgramID

	settled uint64      // revision of a TCX chain that was in order
	moves   []time.Time // to the head, within moveWindow
}

// Two agents who both want to be first would move each other for ever.
const (
	maxMoves   = 20
	moveWindow = time.Minute
)

func newAttachment(f tcFilter, link netlink.Link, prog *ebpf.Program) (a attachment, err error) {
	a = attachment{place: f, link: link, prog: prog}
	if a.id, err = programID(prog); err != nil {
		prog.Close()
		return a, err
	}
	ownPrograms.hold(a.id, prog)
	return a, nil
}

// release lets go of the program, which stays attached.
func (a *attachment) release() {
	if a.prog != nil {
		ownPrograms.close(a.id)
		a.prog = nil
	}
}

func (a *attachment) attach(h *netlink.Handle) error { return a.place.attach(h, a.link, a.prog) }

// there reports whether the program is attached.
func (a *attachment) there(h *netlink.Handle) (bool, error) {
	chain, err := a.place.chain(a.link)
	if errors.Is(err, ErrUplinkGone) {
		return false, nil
	}
	if err == nil && chain.has(a.id) {
		return true, nil
	}
	if err != nil && !errors.Is(err, errNoTCX) {
		return false, err
	}
	filter, err := a.place.inClsact(h, a.link)
	return filter != nil && ebpf.ProgramID(filter.Id) == a.id, err
}

// detach removes the program, unless another is there by now, and says whether it
// was there.
func (a *attachment) detach(h *netlink.Handle) (was bool, err error) {
	was, err = a.there(h)
	if err != nil || !was {
		return was, err
	}
	return true, a.place.detach(h, a.link)
}

// mend puts the program back where it should be, and describes what was not so.
func (a *attachment) mend(h *netlink.Handle, now time.Time) (mended []string, err error) {
	chain, err := a.place.chain(a.link)
	if errors.Is(err, errNoTCX) {
		return a.mendClsact(h)
	}
	if err != nil {
		return nil, err
	}
	if !chain.has(a.id) {
		if chain.find(a.place) != 0 {
			return nil, ErrReplaced
		}
		if err := a.attach(h); err != nil {
			return nil, err
		}
		return []string{a.lost()}, nil
	}
	if chain.revision == a.settled {
		return nil, nil
	}
	foreign := chain.foreign(a.place, a.id)
	if len(foreign) == 0 {
		a.settled = chain.revision
		return nil, nil
	}
	front := ForeignProgram{Hook: a.place.hook(), By: byTCX, ID: uint32(foreign[0]), Name: programName(foreign[0]), Front: true}
	if !a.mayMove(now) {
		return nil, fmt.Errorf("%s of %s: it came back in front %d times within a minute and is left there; what it ends the chain for, %s does not see: have it attached behind", front, a.link.Attrs().Name, maxMoves, a.place.name)
	}
	if err := a.attach(h); err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("moved %s to the front at %s of %s, where %s stood", a.place.name, a.place.hook(), a.link.Attrs().Name, front.who())}, nil
}

// mendWith is mend of the device's settings, too, unless there is nothing more to
// mend.
func (a *attachment) mendWith(s *settings, h *netlink.Handle, now time.Time) (mended []string, err error) {
	mended, err = a.mend(h, now)
	if errors.Is(err, ErrUplinkGone) || errors.Is(err, ErrReplaced) {
		return mended, err
	}
	more, err2 := s.mend(h, a.link)
	return append(mended, more...), errors.Join(err, err2)
}

func (a *attachment) mendClsact(h *netlink.Handle) (mended []string, err error) {
	filter, err := a.place.inClsact(h, a.link)
	if err != nil {
		return nil, err
	}
	if filter != nil {
		if ebpf.ProgramID(filter.Id) != a.id {
			return nil, ErrReplaced
		}
		return nil, nil
	}
	if err := a.attach(h); err != nil {
		return nil, err
	}
	return []string{a.lost()}, nil
}

func (a *attachment) lost() string {
	return fmt.Sprintf("attached %s at %s of %s again, where it was missing", a.place.name, a.place.hook(), a.link.Attrs().Name)
}

// mayMove counts a move to the head, unless there were too many of late.
func (a *attachment) mayMove(now time.Time) bool {
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
