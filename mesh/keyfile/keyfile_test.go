package keyfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/mesh"
)

func publics(keys []mesh.PrivateKey) (all []mesh.PublicKey) {
	for _, k := range keys {
		all = append(all, k.Public())
	}
	return all
}

// What is written is read again, and what weft keygen makes is a key of generation 0.
func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mesh.key")
	made, err := ReadOrMake(file)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ReadOrMake(file); err != nil || !slices.Equal(publics(again), publics(made)) {
		t.Errorf("read again: %v, %v, not %v", publics(again), err, publics(made))
	}
	if b, err := os.ReadFile(file); err != nil || strings.Contains(string(b), ":") || len(b) != 45 {
		t.Errorf("a first key is not as weft keygen makes it: %d bytes, %v", len(b), err)
	}
	two := []mesh.PrivateKey{mesh.NewPrivateKey(15), mesh.NewPrivateKey(0)}
	if err := Write(file, two); err != nil {
		t.Fatal(err)
	}
	if again, err := Read(file); err != nil || !slices.Equal(publics(again), publics(two)) {
		t.Errorf("%v, %v, not %v", publics(again), err, publics(two))
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if all, err := os.ReadDir(filepath.Dir(file)); err != nil || len(all) != 1 {
		t.Errorf("something is left: %v, %v", all, err)
	}
	if err := Write(filepath.Join(file, "x"), two); err == nil {
		t.Error("a file is a folder")
	}
}

func TestRead_refuses(t *testing.T) {
	const secret = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U="
	for text, want := range map[string]string{
		"":                                     "has 0 keys",
		secret + "\n" + secret + "\n" + secret: "has 3 keys",
		"16:" + secret:                         "generation",
		"x:" + secret:                          "generation",
		"c2VjcmV0":                             "32 bytes",
		strings.Repeat("A", 43) + "=":          "all zeros",
	} {
		file := filepath.Join(t.TempDir(), "k")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "c2Vj") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "k")
	if _, err := Read(file); err == nil || !strings.Contains(err.Error(), "weft keygen --out "+file) {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
}
