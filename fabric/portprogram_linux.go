package fabric

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

// portProgram is a program at all ports of a switch, and its maps, kept open: to load
// one takes CAP_BPF, to find one that is loaded CAP_SYS_ADMIN, but to put one back at
// a port that is open CAP_NET_ADMIN is enough, and to use its maps nothing.
type portProgram struct {
	place tcFilter
	prog  *ebpf.Program
	id    ebpf.ProgramID
	maps  map[string]*ebpf.Map
	at    map[int]*attachment // by interface index
}

// openPortProgram takes a program over, with those of its maps.
func openPortProgram(place tcFilter, prog *ebpf.Program, maps map[string]*ebpf.Map) (*portProgram, error) {
	p := &portProgram{place: place, prog: prog, maps: maps, at: make(map[int]*attachment)}
	var err error
	if p.id, err = programID(prog); err != nil {
		return nil, errors.Join(err, p.closeMaps(), prog.Close())
	}
	ownPrograms.hold(p.id, prog)
	ownPrograms.note(p.id, func(own *ownProgram) { own.place = place }) // weft's others must know it
	return p, nil
}

// attachedProgram opens the program at a place of a port, nil where there is none,
// with the maps that are named.
func attachedProgram(h *netlink.Handle, ports []netlink.Link, place tcFilter, names ...string) (*portProgram, error) {
	for _, port := range ports {
		id, err := place.program(h, port)
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
			if maps[name], err = programMap(prog, name); err != nil {
				return nil, errors.Join(err, prog.Close())
			}
		}
		return openPortProgram(place, prog, maps)
	}
	return nil, nil
}

// repair puts the program back at those of the ports that have lost it, or have it
// behind others', and says what it has done. Ports that are gone meanwhile are left
// out.
func (p *portProgram) repair(h *netlink.Handle, ports []netlink.Link) (mended []string, err error) {
	for index := range p.at {
		if !slices.ContainsFunc(ports, func(l netlink.Link) bool { return l.Attrs().Index == index }) {
			delete(p.at, index)
		}
	}
	for _, port := range ports {
		index := port.Attrs().Index
		if p.at[index] == nil {
			p.at[index] = &attachment{place: p.place, prog: p.prog, id: p.id}
		}
		a := p.at[index]
		a.link = port
		did, e := a.mend(h, time.Now())
		if e != nil && !errors.Is(e, ErrUplinkGone) {
			err = errors.Join(err, fmt.Errorf("%s at %s of %s: %w", p.place.name, p.place.hook(), port.Attrs().Name, e))
		}
		mended = append(mended, did...)
	}
	return mended, err
}

// counters reads what the program has counted.
func (p *portProgram) counters(sums ...*uint64) error {
	return sumCounters(p.maps[countersMap], sums...)
}

// descriptors returns new file descriptors of program and maps for a program that
// this process executes: words for openDescriptors.
func (p *portProgram) descriptors() (words []string, err error) {
	add := func(name string, fd int) {
		dup, e := unix.Dup(fd)
		err = errors.Join(err, e)
		words = append(words, fmt.Sprintf("%s=%d", name, dup))
	}
	add(p.place.name, p.prog.FD())
	for name, m := range p.maps {
		add(p.place.name+"/"+name, m.FD())
	}
	return words, err
}

// openDescriptors opens the program of a place by what descriptors has returned;
// nil where it is not among it. It needs no capability.
func openDescriptors(place tcFilter, words []string) (*portProgram, error) {
	var prog *ebpf.Program
	maps := make(map[string]*ebpf.Map)
	for _, word := range words {
		name, number, _ := strings.Cut(word, "=")
		name, mapName, isMap := strings.Cut(name, "/")
		if name != place.name {
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
	return openPortProgram(place, prog, maps)
}

// close lets go of the program, which stays attached.
func (p *portProgram) close() error {
	if p == nil {
		return nil
	}
	ownPrograms.close(p.id)
	return p.closeMaps()
}

func (p *portProgram) closeMaps() (err error) {
	for _, m := range p.maps {
		err = errors.Join(err, m.Close())
	}
	return err
}
