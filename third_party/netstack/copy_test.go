// Package netstack holds a copy of gVisor's TCP; see README.md.
package netstack

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What is here is the version of gVisor in go.mod and the patches, and nothing else.
func TestCopy_isBaseAndPatches(t *testing.T) {
	for _, program := range []string{"sh", "git", "gofmt"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s: %v", program, err)
		}
	}
	made := t.TempDir()
	if out, err := exec.Command("./sync.sh", made).CombinedOutput(); err != nil {
		t.Fatalf("sync.sh: %v\n%s", err, out)
	}
	for _, dir := range []string{"tcp", "internal"} {
		want, have := files(t, filepath.Join(made, dir)), files(t, dir)
		if len(want) == 0 {
			t.Errorf("sync.sh makes no file in %s", dir)
		}
		for name, content := range want {
			if !bytes.Equal(have[name], content) {
				t.Errorf("%s/%s is not what sync.sh makes: change the patches, not the copy, and run sync.sh", dir, name)
			}
		}
		for name := range have {
			if _, ok := want[name]; !ok {
				t.Errorf("%s/%s is neither gVisor's nor a patch's", dir, name)
			}
		}
	}
}

// files returns what the files below a directory contain, by path.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		all[path], err = os.ReadFile(filepath.Join(dir, path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
