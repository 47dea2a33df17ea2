package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fake is a program that describes itself as weft does.
const fake = `#!/bin/sh
case $1 in
commands) cat <<'JSON'
{"use": "weft", "short": "One TCP connection", "long": "", "example": "", "flags": [], "commands": [
 {"use": "host", "short": "Spray", "long": "It has net.ipv4.conf.*.rp_filter and <marks>:\n\n  a  table", "example": "  weft host", "commands": [],
  "flags": [{"name": "config", "shorthand": "", "usage": "the configuration ` + "`file`" + `", "type": "string", "default": "/etc/weft/host.yaml", "no_value": "", "persistent": false}]}]}
JSON
;;
completion) echo "completion of $2" ;;
esac
`

func pretend(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weft")
	if err := os.WriteFile(path, []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func packages(t *testing.T, args ...string) (files map[string][]byte, dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
	if err := run(context.Background(), append([]string{"--out", dir}, args...)); err != nil {
		t.Fatal(err)
	}
	files = make(map[string][]byte)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files, dir
}

// The same input makes the same packages, at another time and by another user of the machine.
func TestBuild_sameBytes(t *testing.T) {
	one, _ := packages(t, "--version", "1.2", "--binary", pretend(t))
	two, _ := packages(t, "--version", "1.2", "--binary", pretend(t))
	if len(one) != 2 || len(two) != 2 {
		t.Fatalf("%d and %d packages", len(one), len(two))
	}
	for name, b := range one {
		if !bytes.Equal(b, two[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

// What the package holds, as dpkg sees it.
func TestBuild_contents(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip(err)
	}
	_, dir := packages(t, "--version", "1.2", "--formats", "deb", "--binary", pretend(t))
	deb, err := filepath.Glob(filepath.Join(dir, "weft_1.2_*.deb"))
	if err != nil || len(deb) != 1 {
		t.Fatal(deb, err)
	}
	list, err := exec.Command("dpkg-deb", "-c", deb[0]).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, list)
	}
	for _, want := range []string{
		"-rwxr-xr-x root/root", " ./usr/bin/weft\n", " ./usr/lib/systemd/system/weft-host.service\n", " ./usr/lib/systemd/system/weft-switch.service\n",
		" ./usr/lib/systemd/system/weft-scheduler.service\n", " ./usr/lib/sysusers.d/weft.conf\n", " ./usr/share/man/man1/weft-host.1.gz\n",
		" ./usr/share/bash-completion/completions/weft\n", " ./usr/share/zsh/vendor-completions/_weft\n", " ./usr/share/fish/vendor_completions.d/weft.fish\n",
		" ./usr/share/doc/weft/copyright\n", " ./usr/share/doc/weft/changelog.gz\n", " ./usr/share/doc/weft/third-party-licenses.gz\n",
		" ./usr/share/doc/weft/examples/host.yaml\n", " ./etc/weft/host.yaml\n",
	} {
		if !strings.Contains(string(list), want) {
			t.Errorf("the package has no %q", want)
		}
	}
	to := t.TempDir()
	if out, err := exec.Command("dpkg-deb", "-R", deb[0], to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(to, name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	if got := read("DEBIAN/conffiles"); got != "/etc/weft/host.yaml\n/etc/weft/scheduler.yaml\n/etc/weft/switch.yaml\n" {
		t.Errorf("conffiles: %q", got)
	}
	if unit := read("usr/lib/systemd/system/weft-host.service"); strings.Contains(unit, "/usr/local") || !strings.Contains(unit, "ExecStart=/usr/bin/weft host ") {
		t.Error(unit)
	}
	page, err := exec.Command("zcat", filepath.Join(to, "usr/share/man/man1/weft-host.1.gz")).Output()
	if text := strings.ReplaceAll(string(page), `\&`, ""); err != nil || !strings.Contains(text, `net.ipv4.conf.*.rp_filter and <marks>`) || !strings.Contains(text, "configuration file") || !strings.Contains(text, "Sep 2026") {
		t.Errorf("%v: %s", err, page)
	}
}

// Two clones in different places make the same packages of a commit.
func TestBuild_reproducible(t *testing.T) {
	if v := os.Getenv("WEFT_TESTS"); v != "all" && v != "long" {
		t.Skip("compiles weft twice: WEFT_TESTS=all runs it")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "-C", root, "rev-parse", "HEAD").CombinedOutput(); err != nil {
		t.Skipf("no clone: %v %s", err, out)
	}
	var made [2]map[string][]byte
	for i := range made {
		clone := filepath.Join(t.TempDir(), strings.Repeat("deeper/", i), "weft")
		if out, err := exec.Command("git", "clone", "-q", "--depth", "1", "file://"+root, clone).CombinedOutput(); err != nil {
			t.Fatalf("git clone: %v\n%s", err, out)
		}
		out := t.TempDir()
		if err := run(context.Background(), []string{"--root", clone, "--out", out, "--compression", "gzip"}); err != nil {
			t.Fatal(err)
		}
		made[i] = make(map[string][]byte)
		entries, _ := os.ReadDir(out)
		for _, e := range entries {
			if made[i][e.Name()], err = os.ReadFile(filepath.Join(out, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(made[0]) != 2 {
		t.Fatalf("%d packages", len(made[0]))
	}
	for name, b := range made[0] {
		if !bytes.Equal(b, made[1][name]) {
			t.Errorf("%s differs, or is there once", name)
		}
	}
}

// What is wrong on the command line is named.
func TestRun_refuses(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
	for args, want := range map[string]string{
		"":                           "--out",
		"--out x --formats apk":      "deb or rpm",
		"--out x --compression lzma": "gzip, xz or zstd",
		"--out x more":               `"more"`,
		"--out x --root /nowhere":    "SOURCE_DATE_EPOCH and --version",
	} {
		err := run(context.Background(), strings.Fields(args))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("build %s: %v, want %s", args, err, want)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if err := run(context.Background(), []string{"--out", t.TempDir()}); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Error(err)
	}
}
