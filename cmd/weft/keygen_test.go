package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/mesh"
	"weft/mesh/keyfile"
)

// What keygen makes is what configuration files take.
func TestKeygen_makesKeysThatFilesTake(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "updates.key")
	if out := mustWeft(t, "keygen", "--out", file); out != "" {
		t.Errorf("printed %q: a key in a file is a secret", out)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, mode %v", err, info.Mode())
	}
	config := filepath.Join(dir, "switch.yaml")
	printed := mustWeft(t, "keygen")
	text := "user: root\nkeys:\n  - id: 1\n    key_file: " + file + "\n  - id: 2\n    key: " + printed
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := mustWeft(t, "switch", "--check", "--config", config); !strings.Contains(out, "valid") {
		t.Errorf("--check says %q", out)
	}
	if again := mustWeft(t, "keygen"); again == printed || strings.Count(again, "\n") != 1 {
		t.Errorf("twice the same key, or more than one line: %q", again)
	}
}

func TestKeygen_overwritesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "updates.key")
	mustWeft(t, "keygen", "--out", file)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "keygen --out "+file, "there already", "name another one")
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the key was changed; %v", err)
	}
	link := file + ".link"
	if err := os.Symlink("/nonexistent/target", link); err != nil {
		t.Fatal(err)
	}
	wantError(t, "keygen --out "+link, "there already")
	wantError(t, "keygen --out /nonexistent/key", "/nonexistent/key")
	wantError(t, "keygen now", "now")
}

// The public key is that of the private one, and is what a DNS directory takes.
func TestKeygen_public(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mesh.key")
	mustWeft(t, "keygen", "--out", file)
	keys, err := keyfile.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if out, want := mustWeft(t, "keygen", "--public", file), "0:"+keys[0].Public().String()+"\n"; out != want {
		t.Errorf("%q, not %q", out, want)
	}
	if err := keyfile.Write(file, []mesh.PrivateKey{mesh.NewPrivateKey(7), mesh.NewPrivateKey(8)}); err != nil {
		t.Fatal(err)
	}
	if out := mustWeft(t, "keygen", "--public", file); !strings.HasPrefix(out, "7:") || strings.Count(out, "\n") != 1 {
		t.Errorf("%q", out)
	}
}
