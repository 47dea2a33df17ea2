package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// source is what the packages are made of.
type source struct {
	version string    // of the packages
	time    time.Time // of all that is in them
	commit  string    // "" where it is not known
}

// source reads the commit. Where there is none, such as in an archive, SOURCE_DATE_EPOCH and
// --version say the same.
func (o *options) source(ctx context.Context) (s source, err error) {
	commit, stamp, gitErr := o.commit(ctx)
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		if stamp, err = strconv.ParseInt(epoch, 10, 64); err != nil {
			return s, fmt.Errorf("SOURCE_DATE_EPOCH=%q: must be seconds since 1970, such as 1767225600", epoch)
		}
		if o.version != "" {
			gitErr = nil
		}
	}
	if gitErr != nil {
		return s, fmt.Errorf("the commit is not known: %w; build in a clone, or give SOURCE_DATE_EPOCH and --version", gitErr)
	}
	s = source{version: o.version, time: time.Unix(stamp, 0).UTC(), commit: commit}
	if s.version == "" {
		// No release has a number yet: a later commit is a later version, and every release will be.
		s.version = fmt.Sprintf("0.0~git%s.%.12s", s.time.Format("20060102150405"), commit)
	}
	return s, nil
}

// commit returns the hash and the time of the commit. A tree with changes is not one.
func (o *options) commit(ctx context.Context) (hash string, stamp int64, err error) {
	out, err := o.git(ctx, "log", "-1", "--format=%H %ct")
	if err != nil {
		return "", 0, err
	}
	if _, err := fmt.Sscan(out, &hash, &stamp); err != nil {
		return "", 0, err
	}
	changes, err := o.git(ctx, "status", "--porcelain", "--untracked-files=no")
	if err == nil && changes != "" && o.version == "" {
		err = errors.New("the tree has changes that are not committed")
	}
	return hash, stamp, err
}

func (o *options) git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", o.root}, args...)...).Output()
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		err = errors.New(strings.TrimSpace(string(e.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// compile builds weft. The binary depends on the source, the commit and Go's version alone: it
// has no paths of this machine in it and links no C.
func (o *options) compile(ctx context.Context, s source, out, arch string) error {
	vcs := fmt.Sprintf("-buildvcs=%t", s.commit != "") // whatever GOFLAGS says
	cmd := exec.CommandContext(ctx, "go", "build", "-C", o.root, vcs, "-trimpath", "-ldflags=-s -w", "-o", out, "./cmd/weft")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, b)
	}
	return nil
}
