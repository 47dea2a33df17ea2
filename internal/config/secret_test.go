package config

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A secret is in the file or in one that it names, and no error tells any of it.
func TestSecret(t *testing.T) {
	secret := [32]byte{1, 2, 31: 9}
	text := base64.StdEncoding.EncodeToString(secret[:])
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var v struct {
		Peers []struct {
			Key     string `yaml:"key"`
			KeyFile string `yaml:"key_file"`
		} `yaml:"peers"`
	}
	l, err := Decode([]byte("peers:\n- key: x\n  key_file: y\n"), "f", &v)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, file string
		given      bool
		says       string
	}{
		{"", "", false, ""},
		{text, "", true, ""},
		{"", file("good", "\n"+text+"\n"), true, ""},
		{text, file("both", text), false, "f:2: peers[0].key: and key_file are both given; remove one"},
		{"c2VjcmV0", "", false, "f:2: peers[0].key: is not 32 bytes in base64; weft keygen makes a key"},
		{text[1:] + "!", "", false, "f:2: peers[0].key: is not 32 bytes"},
		{base64.StdEncoding.EncodeToString(make([]byte, 32)), "", false, "f:2: peers[0].key: is not 32 bytes"},
		{"", file("short", text[:40]), false, "f:3: peers[0].key_file: is not 32 bytes"},
		{"", file("long", strings.Repeat(" ", maxKeyFile)+text), false, "f:3: peers[0].key_file: " + filepath.Join(dir, "long") + ": longer than 4096 bytes"},
		{"", filepath.Join(dir, "none"), false, "f:3: peers[0].key_file: " + filepath.Join(dir, "none") + ": there is no such file"},
	} {
		got, given, err := l.Secret("peers[0].key", c.text, c.file, "weft host")
		want := secret
		if !c.given {
			want = [32]byte{}
		}
		if got != want || given != c.given || (err == nil) != (c.says == "") {
			t.Errorf("%q, %q: %v, %t, %v; want %v, an error saying %q", c.text, c.file, got, given, err, want, c.says)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), c.says) || strings.Contains(err.Error(), text[:20]) || strings.Contains(err.Error(), "c2VjcmV0")) {
			t.Errorf("%v; want %s, and nothing of the secret", err, c.says)
		}
	}
}

// A file is read up to a bound, whatever it is.
func TestRead_isBounded(t *testing.T) {
	for file, says := range map[string]string{
		"/dev/zero":                             "configuration: /dev/zero: longer than 1048576 bytes",
		filepath.Join(t.TempDir(), "none.yaml"): "begin with weft host --print-config > ",
	} {
		if _, err := Read(file, "weft host"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error saying %q", file, err, says)
		}
	}
}
