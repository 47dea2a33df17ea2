package kernel

import (
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// AttachSocketFilter has a socket get only what a classic BPF program lets through, from
// now on; none of it if the program is empty. What is in its buffer already stays there.
func AttachSocketFilter(fd int, program []bpf.RawInstruction) error {
	if len(program) == 0 {
		program = []bpf.RawInstruction{{Op: 6}} // ret 0
	}
	code := make([]unix.SockFilter, len(program))
	for i, r := range program {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]})
	if err != nil {
		return fmt.Errorf("attach filter: %w", err)
	}
	return nil
}
