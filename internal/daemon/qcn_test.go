package daemon

import (
	"strings"
	"testing"

	"weft/topology"
)

func TestQCN_errors(t *testing.T) {
	for text, want := range map[string]string{
		"qcn: {limit_mbit: -1}":                      "f:1: qcn.limit_mbit: is -1, must be from 0.01 to 34000, or auto",
		"qcn:\n  limit_mbit: 40000":                  "f:2: qcn.limit_mbit",
		"qcn: {increase_mbit: .nan}":                 "is not a number",
		"qcn:\n  limit_mbit: 100\n  floor_mbit: 100": "f:3: qcn.floor_mbit: is 100, must be less than limit_mbit, 100",
		"encapsulation: udp\nudp: {name: a, peers: [{name: b, prefixes: [10.0.0.0/8], endpoint: 1.2.3.4:5}]}\nqcn: {enabled: true}\n": "f:3: qcn.enabled: switches do not see inside",
		"qcn: {enable: true}": "did you mean enabled?",
		"failures: {accept_unsigned: true}\nqcn:\n  enabled: true": "f:3: qcn.enabled: is true without failures.keys",
	} {
		if _, err := parseText(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

// The rates are by the host's own link, unless they are given.
func TestQCN_rates(t *testing.T) {
	for text, want := range map[string][3]float64{
		"topology: fat-tree:k=4": {10_000, 10, 0},
		"topology: fat-tree:k=4,host-rate=25000,fabric-rate=100000,core-rate=1000":                   {25_000, 25, 0},
		"topology: fat-tree:k=4,host-rate=100000,fabric-rate=100000,core-rate=1000":                  {34_000, 34, 0},
		"topology: fat-tree:k=4\nqcn: {limit_mbit: 100, floor_mbit: 2, increase_mbit: 0.5}":          {100, 2, 0.5},
		"topology: fat-tree:k=4,host-rate=100,fabric-rate=100,core-rate=100\nqcn: {floor_mbit: 200}": {100, 0.1, 0},
	} {
		c, err := parseText(text)
		if err != nil {
			t.Fatal(err)
		}
		limit, floor, increase := c.qcnRates(c.fabric, topology.NodeID(0))
		if got := [3]float64{limit, floor, increase}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// Messages must be signed with one of the keys, also where updates that are not signed are
// accepted. Without keys none is believed.
func TestQCN_secret(t *testing.T) {
	const key = "failures:\n  keys: [{id: 3, key: a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=}]\n"
	for text, keyed := range map[string]bool{"": false, key + "qcn: {enabled: true}\n": true, key + "  accept_unsigned: true\nqcn: {enabled: true}\n": true} {
		c, err := parseText(text)
		if err != nil {
			t.Fatal(err)
		}
		secret := c.qcnSecret()
		if (string(secret(3)) == strings.Repeat("k", 32)) != keyed || secret(4) != nil || secret(0) != nil {
			t.Errorf("%q: wrong secrets", text)
		}
	}
}
