package shortage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestExplain_namesTheLimitAndTheFix(t *testing.T) {
	for _, c := range []struct {
		errno syscall.Errno
		want  []string
	}{
		{syscall.EMFILE, []string{"descriptors", "LimitNOFILE=", "ulimit -n"}},
		{syscall.ENFILE, []string{"fs.file-max"}},
		{syscall.ENOMEM, []string{"memory", "MemoryMax=", "LimitMEMLOCK="}},
		{syscall.ENOBUFS, []string{"MemoryMax="}},
		{syscall.ENOSPC, []string{"full"}},
	} {
		for name, err := range map[string]error{
			"wrapped": fmt.Errorf("map: %w", c.errno),
			"joined":  errors.Join(io.EOF, os.NewSyscallError("socket", c.errno)),
		} {
			got := Explain(err)
			for _, want := range append(c.want, err.Error()) {
				if !strings.Contains(got.Error(), want) {
					t.Errorf("%v, %s: %q does not say %q", c.errno, name, got, want)
				}
			}
			if !errors.Is(got, c.errno) || !Is(got) {
				t.Errorf("%v, %s: lost its identity", c.errno, name)
			}
			if again := Explain(fmt.Errorf("start: %w", got)); strings.Count(again.Error(), c.want[len(c.want)-1]) != 1 {
				t.Errorf("%v, %s: explained twice: %v", c.errno, name, again)
			}
		}
	}
	for _, err := range []error{nil, io.EOF, syscall.EPERM, syscall.EINVAL} {
		if got := Explain(err); got != err || Is(err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
