package hostprog

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// kind is what the programs of one sort have in common.
type kind struct {
	name   string        // in errors
	device string        // what its device is called in them
	place  kernel.Filter // where it is attached
	closed error         // what methods fail with after Close

	// forgets says that a process that may not read the settings that a crash has left
	// attaches all the same. They are then not restored.
	forgets bool
}

// program is a program of weft at a device of this host: how it gets there, stays there and
// ends. Spray, Steer and Detour are made of it. Its exported methods are safe for
// concurrent use.
type program struct {
	kind  kind
	home  kernel.Home
	heart heart

	counts *ebpf.Map
	also   []io.Closer  // other maps, open as long as the program
	other  netlink.Link // a device that it also needs; nil: none

	mu       sync.Mutex
	handle   *netlink.Handle // nil: closed
	at       kernel.Attachment
	settings *kernel.Settings // of the device; nil: it changes none
	replaced bool             // it took the place of one of this process
	detached func() error     // removes what goes with the program, once that is not there any more; nil: nothing does
}

// open makes the program, of a kind, by what attach does in the network namespace of the
// calling thread. When attach fails, nothing stays open.
func (p *program) open(k kind, device string, attach func() error) error {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return kernel.Explain(fmt.Errorf("%s: %w", k.name, err))
	}
	p.kind, p.handle = k, h
	if p.home, err = kernel.OpenHome(); err == nil {
		err = attach()
	}
	if err != nil {
		p.release()
		return fmt.Errorf("%s: %s %s: %w", k.name, k.device, device, err)
	}
	return nil
}

// own takes over what was loaded for a device.
func (p *program) own(device netlink.Link, prog *ebpf.Program, counts *ebpf.Map, heartbeat *ebpf.Variable) (err error) {
	p.counts = counts
	p.heart.open(heartbeat)
	p.at, err = kernel.NewAttachment(p.kind.place, device, prog)
	return err
}

// attachWith attaches the program and makes settings at its device.
func (p *program) attachWith(w kernel.Wanted) error {
	former, err := p.kind.place.FormerSettings(p.handle, p.at.Link)
	if err != nil && !(p.kind.forgets && errors.As(err, new(kernel.Refused))) {
		return err
	}
	p.replaced = former.Ours()
	// The record is with the program before anything is changed.
	p.settings = w.Plan(p.at.Link, former)
	if err := p.settings.Bind(p.at.Prog); err != nil {
		return err
	}
	if err := p.at.Attach(p.handle); err != nil {
		return err
	}
	if err := p.settings.Apply(p.handle, p.at.Link, former); err != nil {
		_, err2 := p.at.Detach(p.handle)
		return errors.Join(err, err2)
	}
	return nil
}

// use runs f unless the program is closed. Meanwhile no other method runs but Beat.
func (p *program) use(f func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handle == nil {
		return p.kind.closed
	}
	return f()
}

// atHome is use in the network namespace where the program was attached.
func (p *program) atHome(f func() error) error {
	return p.use(func() error { return p.do(f) })
}

func (p *program) do(f func() error) error {
	if err := p.home.Do(f); err != nil {
		return fmt.Errorf("%s: %w", p.kind.name, err)
	}
	return nil
}

// Beat says that the process is alive and does what the program relies on: it keeps the
// paths current, or reads packets. Call it at least four times within the program's
// patience (SprayConfig.Patience, SteerPatience, DetourConfig.Patience). It waits for no
// other method, and makes no system call that needs privileges.
func (p *program) Beat() error { return p.heart.beat(0, p.kind.closed) }

// Repair checks that the program is at its device, that it comes before those of others,
// and that the device's settings are right. It restores what differs and returns a
// sentence for each repair. Call it often: if nothing differs it costs some 30 µs, with
// clsact 50. Moving the program to the front takes two steps; it does not see packets
// between them.
//
// It fails with ErrUplinkGone if a device that the program needs does not exist any more,
// and with ErrReplaced if another Attach has replaced the program. A renamed device is
// the same device. If another owner moves its program to the front again and again,
// Repair stops for a minute, and its error names that program.
func (p *program) Repair() (mended []string, err error) {
	err = p.atHome(func() (err error) {
		if mended, err = p.at.MendWith(p.settings, p.handle, time.Now()); err == nil && p.other != nil {
			_, err = kernel.AttrsOf(p.handle, p.other)
		}
		return err
	})
	return mended, err
}

// Foreign lists other owners' programs and filters at the hook where the program is, in the
// order in which they run.
func (p *program) Foreign() (all []ForeignProgram, err error) {
	err = p.atHome(func() (err error) {
		all, err = p.at.Foreign(p.handle)
		return err
	})
	return all, err
}

// Close detaches the program and restores what was set at its device, also if others have
// removed the program, but not if another Attach has replaced it since. Packets then go as the
// kernel has them. Later calls do nothing.
func (p *program) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handle == nil {
		return nil
	}
	defer p.release()
	return p.do(func() error {
		last, err := p.at.Detach(p.handle)
		if err == nil && !last {
			last, err = p.vacant()
		}
		if err != nil || !last {
			return err
		}
		err = p.settings.Restore(p.handle, p.at.Link)
		if p.detached != nil {
			err = errors.Join(err, p.detached())
		}
		return err
	})
}

// vacant reports whether no program of weft's is in the place.
func (p *program) vacant() (bool, error) {
	id, err := p.kind.place.Program(p.handle, p.at.Link)
	if errors.Is(err, kernel.ErrUplinkGone) {
		return true, nil
	}
	return id == 0, err
}

// release lets go of what this process holds, not of what the kernel holds.
func (p *program) release() {
	p.heart.close()
	p.handle.Close()
	p.handle = nil
	p.home.Close()
	p.at.Release()
	p.settings.Close()
	p.counts.Close()
	for _, c := range p.also {
		c.Close()
	}
}

// detach removes the kind's program from a device in the network namespace of the calling
// thread and restores what was set there, whoever attached it.
func (k kind) detach(device string) (removed bool, err error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return false, kernel.Explain(err)
	}
	defer h.Close()
	links, err := kernel.Links(h, []string{device})
	if err != nil {
		return false, fmt.Errorf("%s: %w", k.name, err)
	}
	id, err := k.place.Program(h, links[0])
	if err != nil || id == 0 {
		return false, err
	}
	// Whatever the record is worth, the program must go.
	former, err := kernel.SettingsOf(id)
	if err2 := k.place.Detach(h, links[0]); err2 != nil {
		return false, fmt.Errorf("%s: %w", k.name, errors.Join(err2, err))
	}
	if err == nil {
		err = former.Restore(h, links[0])
	}
	if err != nil {
		return true, fmt.Errorf("%s: removed, but settings not restored: %w", k.name, err)
	}
	return true, nil
}
