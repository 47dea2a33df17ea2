package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/daemon"
)

func TestHost_printedConfigIsTheExampleAndValid(t *testing.T) { printsTheExample(t, "host") }

func TestHost_bad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "host.yaml")
	if err := os.WriteFile(file, []byte("mode: gateway\npolicie: drb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "host --config "+file, "host.yaml:2", "policie", "did you mean policy?")
	wantError(t, "host --check --config "+file, "host.yaml:2")
	wantError(t, "host --config /nonexistent/host.yaml", "/nonexistent/host.yaml", "--print-config")
	wantError(t, "host --print-config --cleanup", "choose one")
	wantError(t, "status --socket /nonexistent/status.sock", "/nonexistent/status.sock", "is weft host or weft switch running")
}

func TestStatus_printsWhatTheDaemonSays(t *testing.T) {
	socket := answering(t, daemon.Status{Mode: "offload", Policy: "drb", MTU: 1500, Steer: map[string]int{"taken": 7}})
	table := strings.Fields(mustWeft(t, "status", "--all", "--socket", socket))
	if got := strings.Join(table, " "); !strings.Contains(got, " mode offload ") || !strings.Contains(got, "steer.taken 7") {
		t.Errorf("table: %s", got)
	}
	var s daemon.Status
	if err := json.Unmarshal([]byte(mustWeft(t, "status", "--json", "--socket", socket)), &s); err != nil || s.Policy != "drb" {
		t.Errorf("JSON: %+v, %v", s, err)
	}
}
