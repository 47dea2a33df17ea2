package keyfile

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"weft/mesh"
)

// The first start makes an identity, and later ones have the same.
func TestIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mesh.key.identity")
	first, err := Identity(path)
	if err != nil || first.IsZero() {
		t.Fatal(err)
	}
	if again, err := Identity(path); err != nil || again.Public() != first.Public() {
		t.Errorf("%v, %v", again.Public(), err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Identity(path); err == nil || !strings.Contains(err.Error(), "known peers") {
		t.Error(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Identity(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
	if _, err := Identity(filepath.Join(path, "none")); err == nil {
		t.Error("made in no folder")
	}
}

// Names are kept, once each, and one whose line is removed is gone.
func TestKnown(t *testing.T) {
	k := &Known{Path: filepath.Join(t.TempDir(), "known")}
	if all, err := k.Load(); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	one, two := mesh.NewIdentity().Public(), mesh.NewIdentity().Public()
	for range 2 {
		if err := k.Keep(map[string]mesh.PublicIdentity{"a": one, "a name with spaces": two}); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Keep(map[string]mesh.PublicIdentity{"a": two}); err != nil { // it is known already
		t.Fatal(err)
	}
	all, err := k.Load()
	if err != nil || len(all) != 2 || all["a"] != one || all["a name with spaces"] != two {
		t.Errorf("%v, %v", all, err)
	}
	b, err := os.ReadFile(k.Path)
	if err != nil || strings.Count(string(b), "\n") != 2 {
		t.Errorf("%q, %v", b, err)
	}
	for text, want := range map[string]string{
		"x a\n": ":1: must be", one.String() + "\n": ":1: must be", one.String() + " a\n" + two.String() + " a\n": ":2:",
	} {
		if err := os.WriteFile(k.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
		if err := k.Keep(map[string]mesh.PublicIdentity{"b": one}); err == nil {
			t.Errorf("%q: added to", text)
		}
	}
}

// A name that is nobody's is not there, whoever has written it.
func TestKnown_nobodys(t *testing.T) {
	k := &Known{Path: filepath.Join(t.TempDir(), "known")}
	one := mesh.NewIdentity().Public()
	if err := os.WriteFile(k.Path, []byte(mesh.PublicIdentity{}.String()+" a\n"+one.String()+" b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := k.Load(); err != nil || len(all) != 1 || all["b"] != one {
		t.Errorf("%v, %v", all, err)
	}
	if err := k.Keep(map[string]mesh.PublicIdentity{"a": one}); err != nil {
		t.Fatal(err)
	}
	if all, err := k.Load(); err != nil || len(all) != 2 || all["a"] != one {
		t.Errorf("%v, %v", all, err)
	}
}

// Names of both files count, first those of the one that is not written.
func TestKnown_also(t *testing.T) {
	dir := t.TempDir()
	k := &Known{Path: filepath.Join(dir, "known"), Also: filepath.Join(dir, "also")}
	one, two := mesh.NewIdentity().Public(), mesh.NewIdentity().Public()
	given := one.String() + " a\n"
	if err := os.WriteFile(k.Also, []byte(given), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(k.Path, []byte(two.String()+" a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := k.Keep(map[string]mesh.PublicIdentity{"a": two, "b": two}); err != nil {
		t.Fatal(err)
	}
	if all, err := k.Load(); err != nil || len(all) != 2 || all["a"] != one || all["b"] != two {
		t.Errorf("%v, %v", all, err)
	}
	if b, err := os.ReadFile(k.Also); err != nil || string(b) != given {
		t.Errorf("%q, %v", b, err)
	}
	if err := os.WriteFile(k.Also, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Load(); err == nil || !strings.Contains(err.Error(), k.Also+":1:") {
		t.Error(err)
	}
}

// All that start at the same time without a file get the same identity and key.
func TestIdentity_madeOnce(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		var seeds [8][32]byte
		var keys [8][32]byte
		var all sync.WaitGroup
		for i := range seeds {
			all.Go(func() {
				identity, err := Identity(filepath.Join(dir, "identity"))
				if err != nil {
					t.Error(err)
					return
				}
				seeds[i] = identity.Seed()
				list, err := ReadOrMake(filepath.Join(dir, "key"))
				if err != nil {
					t.Error(err)
					return
				}
				keys[i] = list[0].Secret()
			})
		}
		all.Wait()
		for i := range seeds {
			if seeds[i] != seeds[0] || keys[i] != keys[0] {
				t.Fatalf("%d has another identity or key", i)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
			t.Fatalf("%v left, %v", left, err)
		}
	}
}
