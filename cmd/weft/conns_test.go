package main

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weft/internal/kernel"
)

// Those that wait for a timeout come first, then those that have sent most again; the rest is
// counted.
func TestPrintConns(t *testing.T) {
	at := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("10.3.1.3"), port) }
	all := []connection{{Connection: kernel.Connection{Remote: at(1), Sent: 9e6, State: "established"}}, {Connection: kernel.Connection{Remote: at(2), Resent: 7}, Host: "h3.1.3"},
		{Connection: kernel.Connection{Remote: at(3), Timeouts: 2, State: "syn-sent", Waiting: 2000}}, {Connection: kernel.Connection{Remote: at(4)}}}
	slices.SortFunc(all, worse)
	var b bytes.Buffer
	if err := printConns(&b, all, 3); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for !strings.HasPrefix(lines[0], "to ") { // the head may have several lines
		lines = lines[1:]
	}
	for i, want := range []string{"to", "10.3.1.3:3", "10.3.1.3:2", "10.3.1.3:1", "and 1 more"} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q, want %s", i, lines[i], want)
		}
	}
	if f := strings.Fields(lines[1]); f[3] != "syn-sent" || f[6] != "2" {
		t.Errorf("of one that is being opened it says %q", lines[1])
	}
	b.Reset()
	if printConns(&b, nil, 3); !strings.Contains(b.String(), "no TCP connections") {
		t.Errorf("of none it says %q", b.String())
	}
}
