package kernel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel/internal/seam"
)

// errNoTCX means that the kernel has no TCX.
var errNoTCX = errors.New("the kernel has no TCX (Linux 6.6)")

// chain is what runs at a hook by TCX, in this order.
type chain struct {
	Programs []ebpf.ProgramID
	revision uint64 // another after each change
}

// tcxHook is how TCX calls the hook.
func (f Filter) tcxHook() ebpf.AttachType {
	if f.parent == netlink.HANDLE_MIN_INGRESS {
		return ebpf.AttachTCXIngress
	}
	return ebpf.AttachTCXEgress
}

// Chain reads the hook's. It needs CAP_NET_ADMIN, and fails with ErrUplinkGone if
// there is no such device any more.
func (f Filter) chain(port netlink.Link) (c chain, err error) {
	if seam.OnlyClsact.Load() {
		return c, errNoTCX
	}
	r, err := link.QueryPrograms(link.QueryOptions{Target: port.Attrs().Index, Attach: f.tcxHook()})
	switch {
	case errors.Is(err, unix.ENODEV):
		return c, gone(port)
	case errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported):
		return c, errNoTCX
	case err != nil:
		return c, Explain(fmt.Errorf("eBPF programs of %s: %w", port.Attrs().Name, err))
	}
	for _, p := range r.Programs {
		c.Programs = append(c.Programs, p.ID)
	}
	c.revision = r.Revision
	return c, nil
}

// find returns the program that is f's, 0 if there is none whose name can be read.
func (c chain) find(f Filter) ebpf.ProgramID {
	for _, id := range c.Programs {
		if place, ok := placeOf(id); ok && place.Name == f.Name {
			return id
		}
	}
	return 0
}

// place returns the anchor behind those of weft's that are to run before f's.
func (c chain) place(f Filter) link.Anchor {
	anchor := link.Head()
	for _, id := range c.Programs {
		if p, ok := placeOf(id); ok && p.priority < f.priority {
			anchor = link.AfterProgramByID(id)
		}
	}
	return anchor
}

// foreign returns those before a program that are not of weft, or are to run after
// it.
func (c chain) foreign(f Filter, own ebpf.ProgramID) (ids []ebpf.ProgramID) {
	for _, id := range c.Programs {
		if id == own {
			break
		}
		if p, ok := placeOf(id); !ok || p.priority >= f.priority {
			ids = append(ids, id)
		}
	}
	return ids
}

// attachTCX puts a program before those of others and among weft's own by their
// priorities, in place of the one that is there.
func (f Filter) attachTCX(port netlink.Link, prog *ebpf.Program) error {
	id, err := programID(prog)
	if err != nil {
		return err
	}
	ownPrograms.note(id, func(p *ownProgram) { p.place = f })
	for range 10 {
		err = f.tryTCX(port, prog, id)
		if !errors.Is(err, unix.ESTALE) { // another has changed the chain
			break
		}
	}
	if err == nil || errors.Is(err, errNoTCX) || errors.Is(err, ErrUplinkGone) {
		return err
	}
	return Explain(fmt.Errorf("attach %s to %s by TCX: %w", f.Name, port.Attrs().Name, err))
}

func (f Filter) tryTCX(port netlink.Link, prog *ebpf.Program, id ebpf.ProgramID) error {
	chain, err := f.chain(port)
	if err != nil {
		return err
	}
	opts := link.RawAttachProgramOptions{Target: port.Attrs().Index, Program: prog, Attach: f.tcxHook(), ExpectedRevision: chain.revision}
	former := chain.find(f)
	switch {
	case former == id && len(chain.foreign(f, id)) == 0:
		return nil
	case former == id: // there is no way to move one
		if err := link.RawDetachProgram(link.RawDetachProgramOptions(opts)); err != nil {
			return err
		}
		if chain, err = f.chain(port); err != nil {
			return err
		}
		opts.Anchor, opts.ExpectedRevision = chain.place(f), 0
	case former != 0:
		old, err := openProgram(former)
		if err != nil {
			return err
		}
		defer old.Close()
		opts.Anchor = link.ReplaceProgram(old)
		if err := link.RawAttachProgram(opts); err != nil {
			return err
		}
		return f.tryTCX(port, prog, id) // where it was may not be the place
	default:
		opts.Anchor = chain.place(f)
	}
	return link.RawAttachProgram(opts)
}

// detachTCX removes the program that is there, if any.
func (f Filter) detachTCX(port netlink.Link) error {
	chain, err := f.chain(port)
	if errors.Is(err, ErrUplinkGone) {
		return nil
	}
	if err != nil {
		return err
	}
	id := chain.find(f)
	if id == 0 {
		return nil
	}
	prog, err := openProgram(id)
	if err != nil {
		return err
	}
	defer prog.Close()
	return f.removeTCX(port, prog)
}

func (f Filter) removeTCX(port netlink.Link, prog *ebpf.Program) error {
	err := link.RawDetachProgram(link.RawDetachProgramOptions{Target: port.Attrs().Index, Program: prog, Attach: f.tcxHook()})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// has reports whether the chain has a program.
func (c chain) has(id ebpf.ProgramID) bool { return slices.Contains(c.Programs, id) }
