package kernel

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// PortProgram is a program at all ports of a switch, and its maps. It keeps them open.
// Loading a program takes CAP_BPF, and finding a loaded one CAP_SYS_ADMIN. Putting back an
// open one takes only CAP_NET_ADMIN, and using its maps nothing.
type PortProgram struct {
	place Filter
	prog  *ebpf.Program
	id    ebpf.ProgramID
	Maps  map[string]*ebpf.Map
	at    map[int]*Attachment // by interface index
}

// OpenPortProgram takes a program over, with those of its maps.
func OpenPortProgram(place Filter, prog *ebpf.Program, maps map[string]*ebpf.Map) (*PortProgram, error) {
	p := &PortProgram{place: place, prog: prog, Maps: maps, at: make(map[int]*Attachment)}
	var err error
	if p.id, err = programID(prog); err != nil {
		return nil, errors.Join(err, p.closeMaps(), prog.Close())
	}
	ownPrograms.hold(p.id, prog)
	ownPrograms.note(p.id, func(own *ownProgram) { own.place = place }) // weft's others must know it
	return p, nil
}

// AttachedProgram opens the program at a place of a port, with the named maps; nil if there
// is none.
func AttachedProgram(h *netlink.Handle, ports []netlink.Link, place Filter, names ...string) (*PortProgram, error) {
	for _, port := range ports {
		id, err := place.Program(h, port)
		if err != nil {
			return nil, err
		}
		if id == 0 {
			continue
		}
		prog, err := openProgram(id)
		if err != nil {
			return nil, err
		}
		maps := make(map[string]*ebpf.Map)
		for _, name := range names {
			if maps[name], err = ProgramMap(prog, name); err != nil {
				return nil, errors.Join(err, prog.Close())
			}
		}
		return OpenPortProgram(place, prog, maps)
	}
	return nil, nil
}

// Attach puts the program on ports, in place of another at the same place.
func (p *PortProgram) Attach(h *netlink.Handle, ports []netlink.Link) error {
	_, err := p.place.AttachAll(h, ports, p.prog, nil)
	return err
}

// Repair puts the program back at ports that have lost it, or have it behind others'
// programs, and says what it has done. It leaves out ports that no longer exist.
func (p *PortProgram) Repair(h *netlink.Handle, ports []netlink.Link) (mended []string, err error) {
	for index := range p.at {
		if !slices.ContainsFunc(ports, func(l netlink.Link) bool { return l.Attrs().Index == index }) {
			delete(p.at, index)
		}
	}
	for _, port := range ports {
		index := port.Attrs().Index
		if p.at[index] == nil {
			p.at[index] = &Attachment{place: p.place, Prog: p.prog, ID: p.id}
		}
		a := p.at[index]
		a.Link = port
		did, e := a.mend(h, time.Now())
		if e != nil && !errors.Is(e, ErrUplinkGone) {
			err = errors.Join(err, fmt.Errorf("%s at %s of %s: %w", p.place.Name, p.place.hook(), port.Attrs().Name, e))
		}
		mended = append(mended, did...)
	}
	return mended, err
}

// Counters reads what the program has counted.
func (p *PortProgram) Counters(sums ...*uint64) error {
	return SumCounters(p.Maps[CountersMap], sums...)
}

// Descriptors returns new file descriptors of program and maps for a program that this
// process executes, as text for OpenDescriptors.
func (p *PortProgram) Descriptors() (words []string, err error) {
	add := func(name string, fd int) {
		dup, e := unix.Dup(fd)
		err = errors.Join(err, e)
		words = append(words, fmt.Sprintf("%s=%d", name, dup))
	}
	add(p.place.Name, p.prog.FD())
	for name, m := range p.Maps {
		add(p.place.Name+"/"+name, m.FD())
	}
	return words, err
}

// OpenDescriptors opens the program of a place from the result of Descriptors; nil if that
// does not contain it. It needs no capability.
func OpenDescriptors(place Filter, words []string) (*PortProgram, error) {
	var prog *ebpf.Program
	maps := make(map[string]*ebpf.Map)
	for _, word := range words {
		name, number, _ := strings.Cut(word, "=")
		name, mapName, isMap := strings.Cut(name, "/")
		if name != place.Name {
			continue
		}
		fd, err := strconv.Atoi(number)
		if err == nil && isMap {
			maps[mapName], err = ebpf.NewMapFromFD(fd)
		} else if err == nil {
			prog, err = ebpf.NewProgramFromFD(fd)
		}
		if err != nil {
			return nil, fmt.Errorf("descriptor %s: %w", word, err)
		}
	}
	if prog == nil {
		return nil, nil
	}
	return OpenPortProgram(place, prog, maps)
}

// Close closes the program, which stays attached.
func (p *PortProgram) Close() error {
	if p == nil {
		return nil
	}
	ownPrograms.close(p.id)
	return p.closeMaps()
}

func (p *PortProgram) closeMaps() (err error) {
	for _, m := range p.Maps {
		err = errors.Join(err, m.Close())
	}
	return err
}
