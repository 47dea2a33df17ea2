package gather

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/doctor"
)

// program puts a program of a name into PATH for the test.
func program(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func newLooker() *looker {
	return &looker{f: &doctor.Facts{Unknown: make(map[string]string), Settings: make(map[string]string)}}
}

// Rules are asked for by numbers and without the contents of sets, and no answer is too long for
// this machine's memory.
func TestFirewall_asksNFT(t *testing.T) {
	program(t, "nft", `[ "$*" = "-n -t -j list ruleset" ] || exit 1; echo '{"nftables":[{"chain":{"family":"ip","table":"t","name":"c"}}]}'`)
	l := newLooker()
	l.f.System.Root = true
	if l.firewall(); len(l.f.Firewall) != 1 || len(l.f.Unknown) != 0 {
		t.Errorf("%+v, %v", l.f.Firewall, l.f.Unknown)
	}
	program(t, "nft", "exec head -c 40000000 /dev/zero")
	l = newLooker()
	l.f.System.Root = true
	if l.firewall(); !strings.Contains(l.f.Unknown["firewall"], "more than 16 MB") {
		t.Errorf("%v", l.f.Unknown)
	}
}
