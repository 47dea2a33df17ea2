package lab

import (
	"errors"
	"os"
	"testing"

	"weft/fabric"
	"weft/internal/kernel/kerneltest"
)

func TestMain(m *testing.M) {
	kerneltest.Main(m, func(lab string) error {
		err := end(lab)
		if lab == kerneltest.SharedLab() {
			for _, letter := range sharedLetters {
				err = errors.Join(err, end(kerneltest.LabName(letter)))
			}
		}
		return err
	})
}

// end takes down a lab that nobody uses.
func end(lab string) error {
	_, err := tearDown(lab)
	os.Remove(lockPath(lab))
	return err
}

// upLab brings up a lab for the duration of a test.
func upLab(t testing.TB, cfg Config) *Lab {
	t.Helper()
	kerneltest.NeedRoot(t)
	if cfg.Name == "" {
		cfg.Name = kerneltest.LabName("a")
	}
	t.Cleanup(func() {
		if _, err := Down(cfg.Name); err != nil {
			t.Error(err)
		}
	})
	return mustUp(t, cfg)
}

// Labs that tests share, besides kerneltest.SharedLab.
const (
	sharedBounces = "r"
	sharedLabels  = "u"
)

// sharedLetters are ended with kerneltest.SharedLab.
var sharedLetters = []string{sharedBounces, sharedLabels}

// sharedLab brings up a lab for tests that leave it as it was: the first one builds it, Up
// checks and repairs it for each other one, and TestMain takes it down. Its counters go on.
func sharedLab(t *testing.T, cfg Config) *Lab {
	t.Helper()
	kerneltest.NeedRoot(t)
	return mustUp(t, cfg)
}

func mustUp(t testing.TB, cfg Config) *Lab {
	t.Helper()
	l, err := Up(t.Context(), cfg)
	if errors.Is(err, fabric.ErrNoSIDs) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
