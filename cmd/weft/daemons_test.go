package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/service"
)

// printsTheExample makes sure that what a daemon's command prints with --print-config is
// the file of that name in packaging, and a valid one.
// replace, pairs as of strings.NewReplacer, enters what has no default.
func printsTheExample(t *testing.T, command string, replace ...string) {
	t.Helper()
	out := mustWeft(t, command, "--print-config")
	example, err := os.ReadFile("../../packaging/" + command + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if out != string(example) {
		t.Errorf("packaging/%s.yaml is not what weft %s --print-config prints: write it anew", command, command)
	}
	file := filepath.Join(openDir(t), command+".yaml")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(replace...).Replace(out)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := mustWeft(t, command, "--check", "--config", file); !strings.Contains(out, "valid") {
		t.Errorf("--check says %q", out)
	}
}

// openDir makes a directory in which the user whom a daemon becomes can read.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// answering serves what a daemon would say of itself.
func answering(t *testing.T, status any) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := service.ServeStatus(socket, nil, func() any { return status }, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return socket
}

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }
