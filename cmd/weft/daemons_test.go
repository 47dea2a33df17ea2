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
	file := filepath.Join(t.TempDir(), command+".yaml")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(replace...).Replace(out)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Dir(file), filepath.Dir(filepath.Dir(file))} {
		if err := os.Chmod(dir, 0o755); err != nil { // for the user whom the daemon becomes
			t.Fatal(err)
		}
	}
	if out := mustWeft(t, command, "--check", "--config", file); !strings.Contains(out, "valid") {
		t.Errorf("--check says %q", out)
	}
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
