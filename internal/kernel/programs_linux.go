package kernel

import (
	"fmt"
	"strings"
	"sync"

	"github.com/cilium/ebpf"

	"weft/internal/kernel/internal/seam"
)

// ownPrograms are the programs that this process has attached. The kernel opens other
// programs, and tells their names, only with CAP_SYS_ADMIN.
var ownPrograms = programTable{all: make(map[ebpf.ProgramID]ownProgram)}

type programTable struct {
	mu  sync.Mutex
	all map[ebpf.ProgramID]ownProgram
}

type ownProgram struct {
	place      Filter
	madeClsact bool          // the clsact qdisc that it is at is weft's
	settings   *changes      // nil: none
	open       *ebpf.Program // nil if no object of this process holds it
}

// maxOwnPrograms bounds the table. Only a process with CAP_SYS_ADMIN attaches as many, and
// it does not need the table.
const maxOwnPrograms = 4096

// note changes what is known of a program.
func (t *programTable) note(id ebpf.ProgramID, change func(*ownProgram)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) >= maxOwnPrograms {
		for id, p := range t.all {
			if p.open == nil {
				delete(t.all, id)
			}
		}
	}
	p := t.all[id]
	change(&p)
	t.all[id] = p
}

func (t *programTable) get(id ebpf.ProgramID) (ownProgram, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.all[id]
	return p, ok
}

// hold makes a program one that openProgram opens without privileges, until it is
// closed.
func (t *programTable) hold(id ebpf.ProgramID, prog *ebpf.Program) {
	t.note(id, func(p *ownProgram) { p.open = prog })
}

func (t *programTable) close(id ebpf.ProgramID) {
	t.note(id, func(p *ownProgram) {
		p.open.Close() // of nil, too
		p.open = nil
	})
}

// openProgram returns a program, which the caller closes.
func openProgram(id ebpf.ProgramID) (*ebpf.Program, error) {
	ownPrograms.mu.Lock()
	defer ownPrograms.mu.Unlock()
	if p := ownPrograms.all[id].open; p != nil {
		return p.Clone()
	}
	prog, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return nil, Explain(fmt.Errorf("eBPF program %d: %w", id, err))
	}
	return prog, nil
}

// placeOf returns the place that a program is of, false if it is not one of weft's
// or its name cannot be read.
func placeOf(id ebpf.ProgramID) (Filter, bool) {
	if own, ok := ownPrograms.get(id); ok && own.place.Name != "" {
		return own.place, true
	}
	name := nameOf(id)
	for _, f := range weftFilters {
		if name == f.programName() {
			return f, true
		}
	}
	return Filter{}, false
}

// programName is how the kernel calls the place's program.
func (f Filter) programName() string { return strings.ReplaceAll(f.Name, "-", "_") }

// programName returns a program's name, empty if it has none or it cannot be read
// (CAP_SYS_ADMIN).
func nameOf(id ebpf.ProgramID) string {
	prog, err := openProgram(id)
	if err != nil {
		return ""
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return ""
	}
	return info.Name
}

// calledBy is nameOf for people: it also knows what KeepNames has made readable. By this
// name nobody may take a program for weft's: without CAP_SYS_ADMIN it can neither be opened
// nor replaced.
func calledBy(id ebpf.ProgramID) string {
	if name := nameOf(id); name != "" {
		return name
	}
	return names.of(id)
}

func init() {
	seam.Forget = func() {
		ownPrograms.mu.Lock()
		defer ownPrograms.mu.Unlock()
		clear(ownPrograms.all)
	}
}
