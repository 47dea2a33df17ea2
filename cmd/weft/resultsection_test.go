package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestResultSection_newestFirst(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "RESULTS.md")
	if err := os.WriteFile(path, []byte("# Results\n\nNewest first.\n\n## old\n\nfigures\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"second", "third"} {
		s, err := openSection(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.add(func(w io.Writer) error {
			return writeSection(w, title, "weft bench "+title, "Medians.", [][]string{{"case", "Gbit/s"}, {"kernel", "9"}})
		}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	section := func(title string) string {
		return fmt.Sprintf("## %s: %s\n\n`weft bench %s`\n\nMachine: %s: %s. Medians.\n\n| case | Gbit/s |\n|---|---|\n| kernel | 9 |\n\n",
			time.Now().Format(time.DateOnly), title, title, cpuModel(), machine())
	}
	if want := "# Results\n\nNewest first.\n\n" + section("third") + section("second") + "## old\n\nfigures\n"; string(b) != want {
		t.Errorf("got\n%s\nwant\n%s", b, want)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("files left: %v", files)
	}
}

func TestResultSection_failureKeepsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "RESULTS.md")
	os.WriteFile(path, []byte("old"), 0o644)
	s, err := openSection(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.add(func(w io.Writer) error { io.WriteString(w, "half"); return io.ErrShortWrite }); err == nil {
		t.Error("no error")
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("the file is %q", b)
	}
	if _, err := openSection(filepath.Join(t.TempDir(), "none.md")); err == nil || !strings.Contains(err.Error(), "none.md") {
		t.Errorf("error %v", err)
	}
}
