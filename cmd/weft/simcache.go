package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"weft/bench/papers"
	"weft/bench/papers/parts"
)

// partCache is the directory in which parts of runs are kept: --cache. Each has a file,
// which gets its name when it is complete.
type partCache struct {
	dir     string
	build   parts.Build
	quick   bool
	machine string
}

// newPartCache makes the directory, if it is not there, and looks whether it can be written
// before anything runs. Without a name there is none.
func newPartCache(dir string, quick bool) (*partCache, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, cannotWrite("cache", dir, err)
	}
	probe, err := os.CreateTemp(dir, unfinished)
	if err != nil {
		return nil, cannotWrite("cache", dir, err)
	}
	probe.Close()
	os.Remove(probe.Name())
	build, err := thisBuild()
	if err != nil {
		return nil, fmt.Errorf("--cache=%s: %w", dir, err)
	}
	return &partCache{dir, build, quick, cpuModel() + ": " + machine()}, nil
}

// unfinished are the names of files that are being written. Nobody reads them.
const unfinished = ".weft-part-*"

// keeper is c for a batch.
func (c *partCache) keeper() papers.Keeper {
	if c == nil {
		return nil
	}
	return c
}

// Get reads a part. One that is torn is an error, so that nobody wonders why it runs again.
func (c *partCache) Get(u papers.Unit) (*papers.Part, error) {
	want := parts.KeyOf(c.build, u, c.quick)
	b, err := parts.Read(os.DirFS(c.dir), want.File())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, usagef("--cache=%s: %w", c.dir, err)
	}
	_, p, err := parts.Decode(want.File(), b)
	if err != nil {
		return nil, usagef("--cache=%s: %s %w: remove it, and it runs again", c.dir, want.File(), err)
	}
	return p, nil
}

// Put writes a part.
func (c *partCache) Put(u papers.Unit, p *papers.Part) error {
	p.Machine = c.machine
	k := parts.KeyOf(c.build, u, c.quick)
	b, err := parts.Encode(k, p)
	if err != nil {
		return err
	}
	return c.write(k.File(), b)
}

// write gives a file its name when all of it is on the disk.
func (c *partCache) write(name string, b []byte) error {
	f, err := os.CreateTemp(c.dir, unfinished)
	if err != nil {
		return cannotWrite("cache", c.dir, err)
	}
	_, err = f.Write(b)
	if err == nil {
		err = errors.Join(f.Chmod(0o644), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(c.dir, name))
	}
	if err != nil {
		os.Remove(f.Name())
		return cannotWrite("cache", c.dir, err)
	}
	return nil
}

// thisBuild is the commit that this program was built from, or the hash of the program.
func thisBuild() (parts.Build, error) {
	info, _ := debug.ReadBuildInfo()
	b := buildOf(info)
	if b.Commit != "" {
		return b, nil
	}
	path, err := os.Executable()
	if err != nil {
		return b, err
	}
	f, err := os.Open(path)
	if err != nil {
		return b, err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	b.Executable = hex.EncodeToString(sum.Sum(nil))
	return b, err
}

// buildOf is what a program knows of how it was built; nil: nothing. The commit is left out
// if the checkout had changes.
func buildOf(info *debug.BuildInfo) parts.Build {
	b := parts.Build{Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return b
	}
	b.Settings = settingsOf(info)
	for _, s := range info.Settings {
		if s.Key == "GO"+strings.ToUpper(runtime.GOARCH) { // GOAMD64=v3 rounds differently from v1
			b.Platform += " " + s.Value
		}
	}
	if v := versionOf(info); !v.Modified {
		b.Commit = v.Revision
	}
	return b
}

// settingsOf is a hash of what a program was built with, besides the commit: flags of
// compilers, tags, experiments, and the modules that another go.mod may have chosen. What
// the linker was told changes no figure.
func settingsOf(info *debug.BuildInfo) string {
	sum := sha256.New()
	for _, s := range info.Settings {
		if s.Key != "-ldflags" && s.Key != "vcs" && !strings.HasPrefix(s.Key, "vcs.") {
			fmt.Fprintf(sum, "%q=%q\n", s.Key, s.Value)
		}
	}
	for _, m := range info.Deps {
		for ; m != nil; m = m.Replace {
			fmt.Fprintf(sum, "%q %q %q\n", m.Path, m.Version, m.Sum)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
