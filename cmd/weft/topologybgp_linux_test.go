package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"weft/internal/frr"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology/graph"
)

// frrGraph has the addresses of an operator, and a host at the first leaf.
const frrGraph = `nodes:
  s1: {tier: 2, addresses: [172.16.0.1, "2001:db8::1"], as: 65001}
  s2: {tier: 2, addresses: [172.16.0.2, "2001:db8::2"], as: 65002}
  l1: {tier: 1, prefixes: [192.168.1.64/26, "2001:db8:1::/64"], as: 65101}
  l2: {tier: 1, prefixes: [192.168.2.64/26, "2001:db8:2::/64"], as: 65102}
  h1: {addresses: [192.168.1.66]}
links:
  - {ends: [h1, l1]}
  - {ends: [l1, s1]}
  - {ends: [l1, s2]}
  - {ends: [l2, s1]}
  - {ends: [l2, s2]}
`

// frrLab is a lab whose switches run FRR, for the duration of a test.
func frrLab(t *testing.T, text string) *lab.Lab {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, for network namespaces")
	}
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	g, err := graph.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("t%df", os.Getpid())
	t.Cleanup(func() {
		if _, err := lab.Down(name); err != nil {
			t.Error(err)
		}
	})
	l, err := lab.Up(t.Context(), lab.Config{Name: name, Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// heard runs weft at the host until it prints all of want, or for half a minute.
func heard(t *testing.T, l *lab.Lab, want ...string) {
	t.Helper()
	host, err := l.Lookup("h1")
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		var out []byte
		err := l.Do(host.ID, func() (err error) {
			out, err = program(t, "topology", "from-bgp", "--as", "4200000001", "--neighbor", "192.168.1.65=65101").CombinedOutput()
			return err
		})
		missing := ""
		for _, w := range want {
			if !strings.Contains(string(out), w) {
				missing = w
			}
		}
		if missing == "" && err == nil {
			return
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("%v; no %q in\n%s", err, missing, out)
		}
	}
}

// A host hears from FRR's leaf which spines lead to which racks, and when a link fails.
func TestTopologyFromBGP_FRR(t *testing.T) {
	slowtest.Unraced(t)
	l := frrLab(t, frrGraph)
	const failing = "  - {ends: [as65102, as65001]}\n"
	heard(t, l,
		"# paths between racks: 2 to 2\nnodes:\n", // nothing is guessed
		`  as65101: {tier: 1, prefixes: [192.168.1.64/26, "2001:db8:1::/64"], as: 65101}`,
		`  as65102: {tier: 1, prefixes: [192.168.2.64/26, "2001:db8:2::/64"], as: 65102}`,
		`  as65001: {tier: 2, addresses: [172.16.0.1, "2001:db8::1"], as: 65001}`,
		`  as65002: {tier: 2, addresses: [172.16.0.2, "2001:db8::2"], as: 65002}`,
		failing, "  - {ends: [as65102, as65002]}\n")
	if _, err := l.Fail("l2-s1", lab.FailLoud); err != nil {
		t.Fatal(err)
	}
	heard(t, l, "# paths between racks: 1 to 1\nnodes:\n", "  - {ends: [as65102, as65002]}\n")
	if _, err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	heard(t, l, "# paths between racks: 2 to 2\n", failing)
}
