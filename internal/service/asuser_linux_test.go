package service

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestAccount_As(t *testing.T) {
	nobody, err := LookUp("nobody")
	if err != nil {
		t.Skip(err)
	}
	if os.Geteuid() != 0 {
		if err := nobody.As(func() error { return errors.New("called") }); err != nil {
			t.Errorf("another user than root becomes one: %v", err)
		}
		t.Skip("the rest needs root")
	}
	dir := t.TempDir()
	for _, folder := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := nobody.As(func() error { _, err := os.ReadDir(dir); return err }); err != nil {
		t.Skipf("nobody may not look below %s: %v", os.TempDir(), err)
	}
	make := func(name string, mode fs.FileMode, uid, gid int) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, mode), os.Chown(path, uid, gid)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, may := range map[string]bool{
		make("all", 0o644, 0, 0):                             true,
		make("root", 0o600, 0, 0):                            false,
		make("roots group", 0o640, 0, 0):                     false,
		make("own", 0o400, nobody.UID, 0):                    true,
		make("own group", 0o440, 0, nobody.GID):              true,
		make("closed/all", 0o644, 0, 0):                      false,
		make("of another", 0o400, nobody.UID+1, nobody.GID):  false,
		make("own without", 0o044, nobody.UID, nobody.GID+1): false,
	} {
		err := nobody.As(func() error {
			_, err := os.ReadFile(path)
			return err
		})
		if may != (err == nil) || err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: nobody may read it: %v", path, err)
		}
		if _, err := os.ReadFile(path); err != nil {
			t.Errorf("%s: root may not read it any more: %v", path, err)
		}
	}
}
