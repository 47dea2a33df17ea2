package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The names of secrets are known wherever they stand in a line, with nothing learned: in logs, in
// the kernel's command line, in files that are not YAML, in comments.
func TestRedactor_removesSecretsThatNobodyNoted(t *testing.T) {
	for _, text := range []string{
		"uplink: eth0  # password: " + canary,
		"[    0.0] Command line: BOOT_IMAGE=/vmlinuz root=/dev/vda rd.password=" + canary + " quiet",
		"time=2026-11-27T15:50:01Z level=INFO token=" + canary,
		`time=2026-11-27T15:50:01Z level=INFO msg="the user says password=` + canary + `" next=1`,
		`msg="password=` + canary + ` and more" psk="` + canary + `"`,
		`{"msg":"say \"token\": \"` + canary + `\" and more","a":1}`,
		"password: \"" + canary, // a quote that is not closed
		"password: '" + canary + "\n  " + canary + "'\nnext: 1",
		"password: \"one\n  " + canary + "\n\n  two: " + canary + "\"\nnext: 1",
		"password: one\n  " + canary + "\nnext: 1",
		"password: 'it'\\''s " + canary + "'",
		"passwords:\n  alice: " + canary + "\n  bob: |\n    x: " + canary + "\n",
		"- key: |\n    a: " + canary + "\n  id: 3\n",
		"# keys:\n#   - " + canary + "\n",
		"  # keys:\n  # - " + canary + "\n",
		"# key: |\n#   " + canary + "\n#\n#   " + canary + "\n",
		"# keys: [a, " + canary + "]",
		"keys: [a,\n  " + canary + "]",
		"keys:\n- a\n# a comment\n- " + canary + "\n",
		"keys:\n  - {id: 1, key: x}\n  # one\n  - " + canary + "\n",
		"{\n \"keys\": [\n  \"" + canary + "\"\n ]\n}",
		"x: &k " + canary + "\npassword: *k\n",
		"x: &k\n  " + canary + "\npassword: *k\n",
		"key: &k\n  " + canary + "\n",
		"pass: " + canary,
		"DB_PASS=" + canary,
		"dbPass=" + canary,
		"DB_PWD=" + canary,
		"Authorization: Bearer " + canary,
		"curl -H 'Authorization: Basic " + canary + "' x",
		"sends bearer " + canary,
		"https://" + canary + "@proxy.example",
		"GOPROXY=https://u:pa/" + canary + "@proxy.example,direct",
		"run: x --token " + canary + " --fast",
		"a: 1, secret: 12 " + canary,
	} {
		got := string(new(Redactor).Text([]byte(text)))
		if strings.Contains(got, canary) {
			t.Errorf("%q became %q", text, got)
		}
		if again := string(new(Redactor).Text([]byte(got))); again != got {
			t.Errorf("%q became %q, and that %q", text, got, again)
		}
	}
}

// Whatever stands around a secret and however it is quoted, it goes, and the line after it stays.
func TestRedactor_removesSecretsInAllSurroundings(t *testing.T) {
	for _, before := range []string{"", "  ", "- ", "# ", "a: it's # ", `x="y" `, "5\" wide, ", "{id: 1, ", "[12.3] word: "} {
		for _, name := range []string{"key", "rd.password", "DB_PASS", "accept_key", `"token"`, "Authorization"} {
			for _, sep := range []string{":", ": ", "=", " = ", " => "} {
				for _, value := range []string{"%s", "%s more", `"%s"`, `'%s'`, `"a \" %s"`, `'a '' %s'`, "[a, %s]", `{a: "b]", c: %s}`, "it's %s", `"%s`, "[%s", "a \"%s"} {
					for _, after := range []string{"", " # it", "}", `, "b": 1`} {
						text := before + name + sep + strings.Replace(value, "%s", canary, 1) + after + "\nlast line\n"
						got := string(new(Redactor).Text([]byte(text)))
						if strings.Contains(got, canary) || !strings.Contains(got, "\nlast line\n") {
							t.Errorf("%q became %q", text, got)
						}
					}
				}
			}
		}
	}
}

// A long line with many secrets takes time in proportion to its length: with its square, this takes
// longer than tests may.
func TestRedactor_longLine(t *testing.T) {
	text := []byte("{" + strings.Repeat(`"key": "`+canary+`", "a": 1, `, 100_000) + "}")
	if got := string(new(Redactor).Text(text)); strings.Contains(got, canary) || strings.Count(got, `"a": 1`) != 100_000 {
		t.Errorf("%.200s", got)
	}
}

// What stands beside a secret stays where the secret has an end.
func TestRedactor_leavesWhatIsBesideSecrets(t *testing.T) {
	for text, want := range map[string]string{
		`{"token":"x","a":1}`:                       `{"token":"(removed)","a":1}`,
		`msg="password=x" next=1`:                   `msg="password=(removed)" next=1`,
		"keys: [a, b] # two":                        "keys: \"(removed)\" # two",
		"# key: |\n#   x\nuplink: eth0\n":           "# key: |\n#   (removed)\nuplink: eth0\n",
		"keys:\n  - id: 3\n    key: x\nuplink: e\n": "keys:\n  - id: 3\n    key: \"(removed)\"\nuplink: e\n",
	} {
		if got := string(new(Redactor).Text([]byte(text))); got != want {
			t.Errorf("%q became %q, not %q", text, got, want)
		}
	}
}

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
		"x: &k " + canary + "\npassword: *k\nlater: " + canary,
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
		"goroutine 1 [running]:\nweft/cmd/weft.main()\n\t/src/cmd/weft/keygen.go:12 +0x1d\n",
		"a well-known name: bypass: 100000 compass=northwest\n",
		"default via 10.0.0.1 dev eth0 proto static metric 100\n",
	} {
		var r Redactor
		r.Learn([]byte(text))
		if got := string(r.Text([]byte(text))); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
