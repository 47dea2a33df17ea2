package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// buildFlags are those of go build. The go command notes the commit in the binary
// (-buildvcs), which weft version prints. No path of this machine gets into it (-trimpath), and
// no symbols for debuggers (-s -w): traces of panics need none.
var buildFlags = []string{"-trimpath", "-buildvcs=auto", "-ldflags=-s -w -buildid="}

// buildEnv are the variables that would change what is built.
var buildEnv = []string{"CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off"}

func hostArch() string { return runtime.GOARCH }

// build builds weft from its source into a file.
func build(source, file, arch string) error {
	c := exec.Command("go", append(append([]string{"build"}, buildFlags...), "-o", file, "./cmd/weft")...)
	c.Dir = source
	c.Env = append(os.Environ(), append(buildEnv, "GOARCH="+arch)...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", source, err, bytes.TrimSpace(out))
	}
	return nil
}

// program is a binary of weft.
type program struct {
	arch   string
	text   []byte
	digest [sha256.Size]byte
	info   *buildinfo.BuildInfo
}

// readProgram reads a binary, which must run where there is no other file.
func readProgram(file, arch string) (program, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return program{}, err
	}
	e, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return program{}, fmt.Errorf("%s: is no program for Linux: %w", file, err)
	}
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]
	dynamic := slices.ContainsFunc(e.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	info, infoErr := buildinfo.Read(bytes.NewReader(text))
	switch {
	case e.Machine != machine:
		return program{}, fmt.Errorf("%s: is for %v, not for %s; give -arch, or build it with GOARCH=%s", file, e.Machine, arch, arch)
	case dynamic:
		return program{}, fmt.Errorf("%s: needs shared libraries, which the image does not have; build it with CGO_ENABLED=0", file)
	case infoErr != nil:
		return program{}, fmt.Errorf("%s: %w", file, infoErr)
	case !strings.HasSuffix(info.Path, "/cmd/weft"):
		return program{}, fmt.Errorf("%s: is a build of %s, not of weft", file, info.Path)
	}
	return program{arch, text, sha256.Sum256(text), info}, nil
}

// setting returns a setting of the build, such as vcs.revision; "" if there is none.
func (p program) setting(key string) string {
	for _, s := range p.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// epoch is the time of what has none of its own.
var epoch = time.Date(1970, time.January, 1, 0, 0, 0, 0, time.UTC)

// time is the commit's, in seconds; epoch if the binary does not say.
func (p program) time() time.Time {
	t, err := time.Parse(time.RFC3339, p.setting("vcs.time"))
	if err != nil {
		return epoch
	}
	return t.UTC()
}

// version is what there is to name the build.
func (p program) version() string {
	if v := p.info.Main.Version; v != "" {
		return v
	}
	return "(devel)"
}
