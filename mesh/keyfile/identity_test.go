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
		if err := k.Keep(map[string]mesh.PublicIdentity{"a": one, "a name with spaces": two}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Keep(map[string]mesh.PublicIdentity{"a": two}, nil); err != nil { // it is known already
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
		"x a\n": ":1: must be", one.String() + "\n": ":1: must be", one.String() + " a\n" + two.String() + " a\n": ":2:", mesh.PublicIdentity{}.String() + " a\n": ":1:",
	} {
		if err := os.WriteFile(k.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
		if err := k.Keep(map[string]mesh.PublicIdentity{"b": one}, nil); err == nil {
			t.Errorf("%q: added to", text)
		}
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
