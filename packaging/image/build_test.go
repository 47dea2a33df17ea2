package main

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func isStatic(t *testing.T, file string) bool {
	t.Helper()
	e, err := elf.Open(file)
	if err != nil {
		t.Skipf("programs of this system are no ELF: %v", err)
	}
	defer e.Close()
	return !slices.ContainsFunc(e.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

// Two checkouts of the same commit, in folders of different lengths, give the same image and the
// same bill of materials.
func TestBuild_reproducible(t *testing.T) {
	if v := os.Getenv("WEFT_TESTS"); v != "all" && v != "long" {
		t.Skip("builds weft twice: WEFT_TESTS=all runs it")
	}
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Skipf("needs git and a checkout: %v", err)
	}
	source := string(bytes.TrimSpace(top))
	var images, bills [][]byte
	for _, folder := range []string{"a", "a-longer-name/and-deeper"} {
		dir := t.TempDir()
		checkout := filepath.Join(dir, folder)
		if out, err := exec.Command("git", "clone", "-q", "--shared", source, checkout).CombinedOutput(); err != nil {
			t.Fatalf("git clone: %v\n%s", err, out)
		}
		var out bytes.Buffer
		file := filepath.Join(dir, "weft.tar")
		if err := run([]string{"-src", checkout, "-o", file, "-sbom", dir}, &out); err != nil {
			t.Fatal(err)
		}
		for name, to := range map[string]*[][]byte{file: &images, filepath.Join(dir, "weft-linux-"+hostArch()+".cdx.json"): &bills} {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			*to = append(*to, text)
		}
	}
	if !bytes.Equal(images[0], images[1]) {
		t.Error("two builds of one commit are different images")
	}
	if !bytes.Equal(bills[0], bills[1]) {
		t.Error("two builds of one commit have different bills of materials")
	}
	t.Logf("%d bytes of image, %d of bill", len(images[0]), len(bills[0]))
}
