package apps

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
)

// group starts shells that wait for each other. before is called before each.
func group(t *testing.T, before func(i int), scripts ...string) *gathered {
	t.Helper()
	g, err := newGathered()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.close(); err != nil {
			t.Error(err)
		}
		for _, p := range g.all {
			if err := p.Kill(); err != nil {
				t.Error(err)
			}
		}
	})
	for i, script := range scripts {
		before(i)
		if err := g.start(command(t.TempDir(), nil, "bash", "-c", script, "bash", "two words"), ""); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// Clients begin when all have been started, and not before.
func TestGathered_beginTogether(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "last")
	see := `test -e ` + mark + ` && echo "$1"; cat`
	g := group(t, func(i int) {
		if i < 2 {
			return
		}
		time.Sleep(300 * time.Millisecond) // a client that did not wait would look now
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}, see, see, see)
	ctx, cancel := context.WithTimeout(t.Context(), kerneltest.Patience)
	defer cancel()
	begin, err := g.release(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range g.all {
		if took, err := p.await(ctx, begin); err != nil || took <= 0 || p.out.String() != "two words\n" || p.name != "bash" {
			t.Errorf("client %d: %v, %v: %q", i, took, err, p.out)
		}
	}
}

// Who does not come is told of, and does not keep the others waiting for ever.
func TestGathered_oneDoesNotCome(t *testing.T) {
	g := group(t, func(int) {}, "true")
	if err := g.start(command("/nowhere", nil, "true"), ""); err == nil {
		t.Error("a program without its directory is started")
	}
	dead, err := start(command(t.TempDir(), nil, "true"), "") // it does not say that it is here
	if err != nil {
		t.Fatal(err)
	}
	g.all = append(g.all, dead)
	ctx, cancel := context.WithTimeout(t.Context(), kerneltest.Patience)
	defer cancel()
	if _, err := g.release(ctx); err == nil || !strings.Contains(err.Error(), "1 of 2 clients wait for each other") {
		t.Error(err)
	}
	g = group(t, func(int) {}, "true")
	end, err := syscall.Dup(int(g.here.Fd())) // one end more, which stays open
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(end)
	canceled, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := g.release(canceled); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
