package fabric

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/cilium/ebpf"

	"weft/internal/kernel"
)

// bpfFS is where maps of extensions are pinned that ask for it (LIBBPF_PIN_BY_NAME).
const bpfFS = "/sys/fs/bpf"

// loadExtensions puts programs into the meter's array, those that can be loaded, one after
// the other.
func loadExtensions(list []Extension, array *ebpf.Map) []ExtensionStatus {
	status := make([]ExtensionStatus, len(list))
	next := uint32(0)
	for i, e := range list {
		status[i].Extension = e.String()
		if err := e.load(array, next); err != nil {
			status[i].Error = err.Error()
			continue
		}
		next++
	}
	return status
}

// load puts the program at a place of the array.
func (e Extension) load(array *ebpf.Map, place uint32) error {
	open := e.fromObject
	if e.Pinned != "" {
		open = e.fromPin
	}
	prog, err := open(array)
	if err != nil {
		return err
	}
	defer prog.Close() // the array keeps it
	if err := array.Put(place, prog); err != nil {
		return fmt.Errorf("the kernel does not let the meter call it: %w; it must be a tc program like those of SEC(\"tc\")", err)
	}
	return nil
}

func (e Extension) fromPin(*ebpf.Map) (*ebpf.Program, error) {
	prog, err := ebpf.LoadPinnedProgram(e.Pinned, nil)
	if err != nil {
		return nil, kernel.Explain(err)
	}
	if prog.Type() != ebpf.SchedCLS {
		prog.Close()
		return nil, wrongType(prog.Type())
	}
	return prog, nil
}

// onlyOurs refuses an object that others than root and the caller can write: who writes it
// has his code run in the kernel.
func onlyOurs(f *os.File) error {
	s, err := f.Stat()
	if err != nil {
		return err
	}
	if owner := int(s.Sys().(*syscall.Stat_t).Uid); owner != 0 && owner != os.Geteuid() {
		return fmt.Errorf("object %s belongs to user %d, who could change it: chown root %[1]s", f.Name(), owner)
	}
	if mode := s.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("object %s has mode %#o, so others can write it: chmod go-w %[1]s", f.Name(), mode)
	}
	return nil
}

func wrongType(is ebpf.ProgramType) error {
	return fmt.Errorf("it is a program of type %s; a tc program is needed, SEC(\"tc\")", is)
}

func (e Extension) fromObject(array *ebpf.Map) (*ebpf.Program, error) {
	f, err := os.Open(e.Object)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := onlyOurs(f); err != nil {
		return nil, err
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s is no object with eBPF programs: %w", e.Object, err)
	}
	p := spec.Programs[e.Program]
	if p == nil {
		return nil, fmt.Errorf("%s has no program %s; it has %s", e.Object, e.Program, strings.Join(slices.Sorted(maps.Keys(spec.Programs)), ", "))
	}
	if p.Type != ebpf.SchedCLS {
		return nil, wrongType(p.Type)
	}
	// Tail calls are between programs of one kind.
	meter, err := loadMeter()
	if err != nil {
		return nil, err
	}
	p.AttachType = meter.Programs[meterProgWeftMeter].AttachType
	spec.Programs = map[string]*ebpf.ProgramSpec{e.Program: p}
	opts := ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: bpfFS}, MapReplacements: map[string]*ebpf.Map{}}
	if _, ok := spec.Maps[meterMapWeftExtensions]; ok {
		opts.MapReplacements[meterMapWeftExtensions] = array
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, opts)
	var refused *ebpf.VerifierError
	switch {
	case errors.As(err, &refused) && len(refused.Log) > 0:
		return nil, errors.New(refusal(refused.Log))
	case err != nil:
		return nil, kernel.Explain(err)
	}
	defer coll.Close()
	return coll.DetachProgram(e.Program), nil
}
