package exitcode

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
)

func TestOf(t *testing.T) {
	plain := errors.New("something")
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"no error", nil, OK},
		{"no mark", plain, Failed},
		{"usage", AsUsage(plain), Usage},
		{"absent, wrapped", fmt.Errorf("lab: %w", AsAbsent(plain)), Absent},
		{"the outermost mark counts", AsUsage(fmt.Errorf("--name: %w", AsAbsent(plain))), Usage},
		{"one of several", errors.Join(io.EOF, AsAbsent(plain)), Absent},
		{"the kernel refuses", os.NewSyscallError("sendto", syscall.EPERM), Failed},
		{"for a privilege", AsAbsent(os.NewSyscallError("socket", syscall.EPERM)), Absent},
		{"a file may not be read", &os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, Failed},
		{"nothing to mark", errors.Join(AsUsage(nil), AsAbsent(nil)), OK},
	} {
		if got := Of(c.err); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if err := AsUsage(fmt.Errorf("x: %w", io.EOF)); err.Error() != "x: EOF" || !errors.Is(err, io.EOF) {
		t.Errorf("a mark changes the error: %v", err)
	}
}
