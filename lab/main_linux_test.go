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
		_, err := tearDown(lab)
		os.Remove(lockPath(lab))
		return err
	})
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
