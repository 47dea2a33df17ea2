package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// canary is no word of any text here, and not in base64 of 32 bytes.
const canary = "canary-7f3a9c"

func TestRedactor_removesSecretsInAllForms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret.key")
	if err := os.WriteFile(file, []byte(canary+"-of-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"key: " + canary,
		"key: \"" + canary + "\"",
		"key: '" + canary + "' # " + canary,
		"# key: " + canary + ", an old one",
		"- key: " + canary,
		"- {id: 1, key: " + canary + "}",
		"keys: [{id: 1, key: " + canary + "}, {id: 2, key: \"" + canary + "2\"}]",
		"keys: [" + canary + "]",
		"keys:\n  - " + canary,
		"key: |\n  " + canary + "\n  " + canary + "b",
		"key: >-\n  " + canary + "\nnext: 1",
		"key:\n  " + canary + "\n",
		"udp: {peers: [{name: x, accept_key: " + canary + "}]}",
		"password: " + canary + " with blanks",
		"bgp: {password: " + canary + "}",
		"\"secret\": \"" + canary + "\"",
		"{\"token\":\"" + canary + "\",\"a\":1}",
		"WEFT_TOKEN=" + canary,
		"psk=" + canary,
		"url: http://user:" + canary + "@host/",
		"key: " + canary + "\n\tbroken: [", // which is not YAML
		"accept_key_file: " + file + "\nlog: the key " + canary + "-of-a-file is wrong",
		"key: " + canary + "\nlater: " + canary,
	} {
		var r Redactor
		r.Learn([]byte(text))
		if got := r.Text([]byte(text)); strings.Contains(string(got), canary) {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestRedactor_knowsWeftsKeysAnywhere(t *testing.T) {
	key := "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	if got := new(Redactor).Text([]byte("a line with " + key + " in it")); strings.Contains(string(got), key) {
		t.Errorf("%s", got)
	}
}

func TestRedactor_leavesTheRest(t *testing.T) {
	for _, text := range []string{
		"topology: fat-tree:k=4\npolicy: drb\nuplink: [eth0, eth1]\n",
		"udp:\n  peers:\n    - name: b\n      key_file: /etc/weft/b.key\n      key_id: 3\n      prefixes: [10.9.0.2/32]\n",
		"keys:\n  - id: 3\n    from: 2027-01-31T12:00:00Z\n    key_file: /etc/weft/updates.key\n",
		"{\"signed\": true, \"keys\": 2, \"by_key\": false}\n",
		"default via 10.0.0.1 dev eth0 proto static metric 100\n",
	} {
		var r Redactor
		r.Learn([]byte(text))
		if got := string(r.Text([]byte(text))); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
