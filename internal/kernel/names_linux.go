package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// namesVariable passes the descriptor of KeepNames to the program that is executed next.
const namesVariable = "WEFT_PROGRAM_NAMES"

// KeepNames makes the names of all eBPF programs readable for a process without
// CAP_SYS_ADMIN: for that which this one executes next, by a descriptor that stays open. It
// returns a variable of that one's environment, in which TakeNames finds it.
//
// The descriptor is that of an iterator, a program that lists the kernel's programs whenever
// somebody reads it. Its loading needs privileges (CAP_PERFMON and CAP_SYS_ADMIN), reading
// it needs CAP_BPF alone. The kernel must describe its own types (kernel option
// DEBUG_INFO_BTF).
func KeepNames() (variable string, err error) {
	spec, err := nameLister()
	if err != nil {
		return "", fmt.Errorf("names of eBPF programs: %w", err)
	}
	prog, err := ebpf.NewProgram(spec)
	if err != nil {
		return "", Explain(fmt.Errorf("names of eBPF programs: %w", err))
	}
	defer prog.Close()
	iter, err := link.AttachIter(link.IterOptions{Program: prog})
	if err != nil {
		return "", Explain(fmt.Errorf("names of eBPF programs: %w", err))
	}
	defer iter.Close()
	fd, err := unix.FcntlInt(uintptr(iter.FD()), unix.F_DUPFD, 3) // without O_CLOEXEC
	if err != nil {
		return "", fmt.Errorf("names of eBPF programs: %w", err)
	}
	return fmt.Sprintf("%s=%d", namesVariable, fd), nil
}

// TakeNames takes over what KeepNames has left to this process, if anything, and removes
// the variable from the environment.
func TakeNames() {
	fd, err := strconv.Atoi(os.Getenv(namesVariable))
	os.Unsetenv(namesVariable)
	if err != nil {
		return
	}
	unix.CloseOnExec(fd)
	l, err := link.NewFromFD(fd)
	if err != nil {
		return
	}
	if iter, ok := l.(*link.Iter); ok {
		names.use(iter)
	} else {
		l.Close()
	}
}

// DropNames makes names unreadable again.
func DropNames() { names.use(nil) }

// nameLen is BPF_OBJ_NAME_LEN (linux/bpf.h); an entry of the list is a program's number and
// its name.
const (
	nameLen   = 16
	nameEntry = 4 + nameLen
)

// nameLister is a program of type bpf_iter for programs: it writes an entry for each.
func nameLister() (*ebpf.ProgramSpec, error) {
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, err
	}
	var at struct{ aux, id, name int16 }
	for _, m := range []struct {
		of, name string
		at       *int16
	}{{"bpf_prog", "aux", &at.aux}, {"bpf_prog_aux", "id", &at.id}, {"bpf_prog_aux", "name", &at.name}} {
		if *m.at, err = memberOf(types, m.of, m.name); err != nil {
			return nil, err
		}
	}
	const entry, context, listed = -24, 8, "listed"
	return &ebpf.ProgramSpec{
		Name: "weft_names", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: "bpf_prog", License: "GPL",
		Instructions: asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1), // struct bpf_iter__bpf_prog: its seq_file's description, and the program
			asm.LoadMem(asm.R7, asm.R6, context, asm.DWord),
			asm.JEq.Imm(asm.R7, 0, listed), // the end
			asm.LoadMem(asm.R8, asm.R7, at.aux, asm.DWord),
			asm.LoadMem(asm.R2, asm.R8, at.id, asm.Word),
			asm.StoreMem(asm.RFP, entry, asm.R2, asm.Word),
			asm.Mov.Reg(asm.R1, asm.RFP),
			asm.Add.Imm(asm.R1, entry+4),
			asm.Mov.Imm(asm.R2, nameLen),
			asm.Mov.Reg(asm.R3, asm.R8),
			asm.Add.Imm(asm.R3, int32(at.name)),
			asm.FnProbeReadKernel.Call(),
			asm.LoadMem(asm.R1, asm.R6, 0, asm.DWord), // struct bpf_iter_meta
			asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord), // its seq
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, entry),
			asm.Mov.Imm(asm.R3, nameEntry),
			asm.FnSeqWrite.Call(),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(listed),
			asm.Return(),
		},
	}, nil
}

// memberOf is where a member of one of the kernel's structs is, in bytes.
func memberOf(types *btf.Spec, of, name string) (int16, error) {
	var t *btf.Struct
	if err := types.TypeByName(of, &t); err != nil {
		return 0, err
	}
	for _, m := range t.Members {
		if m.Name == name {
			return int16(m.Offset.Bytes()), nil
		}
	}
	return 0, fmt.Errorf("struct %s of the kernel has no %s", of, name)
}

// names are those that TakeNames makes readable.
var names nameTable

// nameTable remembers the names of programs. The kernel gives a program's number to no
// other one.
type nameTable struct {
	mu   sync.Mutex
	iter *link.Iter // nil: nothing is readable
	all  map[ebpf.ProgramID]string
}

// maxNames bounds the programs that are listed.
const maxNames = 1 << 14

func (t *nameTable) use(iter *link.Iter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.iter != nil {
		t.iter.Close()
	}
	t.iter, t.all = iter, nil
}

// of returns a program's name, empty if it has none or it cannot be read.
func (t *nameTable) of(id ebpf.ProgramID) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if name, known := t.all[id]; known || t.iter == nil {
		return name
	}
	if all, err := listNames(t.iter); err == nil {
		t.all = all
	}
	return t.all[id]
}

func listNames(iter *link.Iter) (map[ebpf.ProgramID]string, error) {
	r, err := iter.Open()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r, maxNames*nameEntry))
	all := make(map[ebpf.ProgramID]string, len(b)/nameEntry)
	for ; len(b) >= nameEntry; b = b[nameEntry:] {
		all[ebpf.ProgramID(binary.NativeEndian.Uint32(b))] = unix.ByteSliceToString(b[4:nameEntry])
	}
	return all, errors.Join(err, r.Close())
}
