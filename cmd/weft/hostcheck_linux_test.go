package main

import (
	"os"
	"path/filepath"
	"testing"
)

// What root may read and the daemon's user may not keeps a daemon from starting, so a check says so:
// the file itself, a fabric's, a key.
func TestCheck_asTheDaemonsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, who becomes another user")
	}
	dir := openDir(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fabric, key := write("fabric.yaml", "kind: fat-tree\nk: 4\n"), filepath.Join(dir, "key")
	mustWeft(t, "keygen", "--out", key)
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	keys := "keys: [{id: 1, key_file: " + key + "}]\n"
	host := write("host.yaml", "user: nobody\ntopology: "+fabric+"\nfailures: {"+keys[:len(keys)-1]+"}\n")
	agent := write("switch.yaml", "user: nobody\ntopology: "+fabric+"\n"+keys)
	for command, file := range map[string]string{"host": host, "switch": agent} {
		for _, secret := range []string{key, fabric, file} {
			if err := os.Chmod(secret, 0o600); err != nil {
				t.Fatal(err)
			}
			wantError(t, command+" --check --config "+file, filepath.Base(file)+":1: user: nobody, whom the daemon becomes, cannot read it: ", filepath.Base(secret), "permission denied")
			if err := os.Chmod(secret, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
