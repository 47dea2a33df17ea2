package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"a_test.go": `package a
func TestQuick(t *testing.T) { helper(1) }
func TestUnraced(t *testing.T) { slowtest.Unraced(t) }
func TestShort(t *testing.T) { if testing.Short() { return } }
func TestSystem(t *testing.T) { slowtest.System(t) }
func TestSystemShort(t *testing.T) { slowtest.System(t); t.Run("", func(t *testing.T) { short() }) }
func TestBySubtest(t *testing.T) { t.Run("", func(t *testing.T) { n := rounds(9); n++ }) }
func TestByMethod(t *testing.T) { l.few() }
func TestPassed(t *testing.T) { each(rounds) }
`,
		"b_test.go": `package a
func rounds(n int) int { return less(n) }
func short() bool { return testing.Short() }
func less(n int) int { if slowtest.Small() { return 1 }; return n }
func helper(n int) { again(n) }
func again(n int) { helper(n) }
func (l lab) few() { _ = less(2) }
`,
		"a.go": "package a\nfunc helper2() { testing.Short() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, have, err := find(asks, []string{dir, t.TempDir(), dir})
	if want := []string{"TestByMethod", "TestBySubtest", "TestPassed", "TestSystemShort", "TestUnraced"}; err != nil || !slices.Equal(got, want) || !slices.Equal(have, []string{dir, dir}) {
		t.Errorf("%q in %q, %v; want %q in %s", got, have, err, want, dir)
	}
	if got, _, err := find([][]string{{"slowtest.System"}}, []string{dir}); err != nil || !slices.Equal(got, []string{"TestSystem", "TestSystemShort"}) {
		t.Errorf("%q, %v: want those of whole systems", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "c_test.go"), []byte("no Go"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _, err := find(asks, []string{dir}); err == nil {
		t.Errorf("a file that is no Go: %q", got)
	}
}
