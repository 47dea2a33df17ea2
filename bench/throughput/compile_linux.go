package throughput

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// compile builds a program of a module of its own, whose source is in a directory, as it is in
// weft's source tree by the name usual. It downloads nothing.
func (b *bench) compile(ctx context.Context, source, program, usual string) (file string, err error) {
	if _, err := os.Stat(filepath.Join(source, "go.mod")); source == "" || err != nil {
		return "", fmt.Errorf("no source of the program in %q: run weft in its source tree, or say where %s is", source, usual)
	}
	file = filepath.Join(b.scratch, path.Base(path.Join(usual, program)))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", file, program)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
	// The compilers end with the go command.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		const most = 3 // lines: each package that is missing has one
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(out)), "\n"), func(l string) bool { return strings.HasPrefix(l, "go: downloading ") })
		said := strings.Join(lines[:min(most, len(lines))], "\n")
		return "", fmt.Errorf("go build in %s: %w: %s (if modules are missing: cd %s && go mod download)", source, err, said, source)
	}
	return file, nil
}
