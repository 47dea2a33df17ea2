package switchd

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDefault_isAValidConfiguration(t *testing.T) {
	f, err := parse(nil, "empty.yaml")
	if err != nil {
		t.Fatal(err)
	}
	full, err := parse(defaultYAML, "default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !f.sameButKeys(full) || f.Hello != 50*time.Millisecond || !f.Routes || f.Topology != "fat-tree:k=4" {
		t.Errorf("an empty file gives %+v", f)
	}
}

func TestParse_namesTheLineAndTheFix(t *testing.T) {
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	for text, want := range map[string][]string{
		"topology: fat-tree:k=4\nhelo: 5ms\n":     {"x.yaml:2: helo", "did you mean hello?"},
		"hello: 5":                                {"x.yaml:1: hello", "with its unit"},
		"hello: 0s":                               {"x.yaml:1: hello", "more than 0"},
		"hello: 1h":                               {"x.yaml:1: hello", "30s"},
		"multiplier: 1":                           {"x.yaml:1: multiplier", "2 to 255"},
		"multiplier: 0":                           {"x.yaml:1: multiplier", "2 to 255"},
		"log:\n  format: xml":                     {"x.yaml:2: log.format", "text and json"},
		"log: {level: loud}":                      {"x.yaml:1: log.level", "debug, info, warn and error"},
		"topology: ring":                          {"x.yaml:1: topology", "ring"},
		"\nnode: h0.0.2":                          {"x.yaml:2: node", "is a host"},
		"node: e9.9":                              {"x.yaml:1: node", "e9.9"},
		"ports: swp":                              {"x.yaml:1: ports", "%d"},
		"refresh: 15s":                            {"x.yaml: max_age", "at least twice as long"},
		"damping:\n  hold: -1s":                   {"x.yaml:2: damping.hold", "0s or more"},
		"damping:\n  hold: 1m":                    {"x.yaml:1: damping.max", "less than hold, 1m"},
		"encap: gre":                              {"x.yaml:1: encap", "ipip, srv6, mpls"},
		"meter:\n  rate_mbit: -1":                 {"x.yaml:2: meter.rate_mbit", "or auto"},
		"meter:\n  ecn_bytes: -1":                 {"x.yaml:2: meter.ecn_bytes", "0 or more"},
		"meter:\n  ecn: -5us":                     {"x.yaml:2: meter.ecn", "0 or more"},
		"meter:\n  ecn: fast":                     {"x.yaml:2: meter.ecn", "such as 65us"},
		"meter:\n  ecn: 65us\n  ecn_bytes: 1":     {"x.yaml:3: meter.ecn_bytes", "ecn is 65µs; remove ecn_bytes"},
		"meter:\n  red:\n    action: kill":        {"x.yaml:3: meter.red.action", "use off, drop or mark"},
		"meter:\n  ecn: 1\n  red: {action: mark}": {"x.yaml:3: meter.red.action", "set ecn to 0"},
		"meter:\n  red: {max_p: 2}":               {"x.yaml:2: meter.red.max_p", "to 1"},
		"meter:\n  red: {weight: 0}":              {"x.yaml:2: meter.red.weight", "0.0005 to 1"},
		"meter:\n  red: {min: 0}":                 {"x.yaml:2: meter.red.min", "must be more"},
		"meter:\n  red: {min: 3ms, max: 2ms}":     {"x.yaml:2: meter.red.min", "less than Max, 2ms"},
		"meter: {red: {action: drop}}":            {"x.yaml:1: meter.red.action", "meter.enabled is false", "set meter.enabled to true"},
		"meter:\n  qcn: {weight: 17}":             {"x.yaml:2: meter.qcn.weight", "at most 16"},
		"meter:\n  qcn: {max_p: 0.001}":           {"x.yaml:2: meter.qcn.max_p", "from MinP, 0.01"},
		"meter:\n  qcn: {plateau: 0}":             {"x.yaml:2: meter.qcn.plateau", "from 1 to 63"},
		"meter:\n  qcn: {target: -1}":             {"x.yaml:2: meter.qcn.target", "0 or more"},
		"meter: {qcn: {target: 1ms}}":             {"x.yaml:1: meter.qcn.target", "meter.enabled is false", "set meter.enabled to true"},
		"meter:\n  ecn: 65us":                     {"x.yaml:2: meter.ecn", "meter.enabled is false"},
		"meter:\n  ecn_bytes: 5":                  {"x.yaml:2: meter.ecn_bytes", "meter.enabled is false"},
		"meter: {enabled: true}\nextensions: [{object: x.o, program: x}]":  {"x.yaml:2: extensions", "object x.o", "from /"},
		"extensions: [{object: x.o, program: x}]":                          {"x.yaml:1: extensions", "set meter.enabled to true"},
		"meter: {enabled: true}\nextensions: [{object: /x.o}]":             {"x.yaml:2: extensions", "extension 0: program is missing"},
		"meter: {enabled: true}\nextensions: [{pinned: /x}, {pinned: /y}]": {"x.yaml:2: extensions", "extension 0: /x is pinned, so it must be the last"},
		"meter:\n  tau: 2m":                             {"x.yaml:2: meter.tau", "at most 1m"},
		"meter:\n  qcm_unit: 0":                         {"x.yaml:2: meter.qcm_unit", "1500 bytes"},
		"meter:\n  qcm_unit: 3000":                      {"x.yaml:2: meter.qcm_unit", "leave it out"},
		"meter:\n  rate: 5":                             {"x.yaml:2: meter.rate", "unknown key"},
		"keys:\n- id: 0\n  key: " + key:                 {"x.yaml:2: keys[0].id", "1 to 255"},
		"keys:\n- id: 1\n  key: abc":                    {"x.yaml:3: keys[0].key", "32 bytes in base64"},
		"keys:\n- id: 1\n  key: " + key + "\n  from: 5": {"x.yaml:4: keys[0].from", "RFC 3339"},
		"keys:\n- id: 1\n  key: " + key + "\nscheduler: {servers: ['10.0.0.9:9341'], link_mbit: 10}":                 {"x.yaml:4: scheduler.servers", "balance: routes", "set balance to ecmp"},
		"keys:\n- id: 1\n  key: " + key + "\nbalance: ecmp\nscheduler: {servers: ['10.0.0.9:9341']}":                 {"x.yaml:5: scheduler.link_mbit", "give the rate"},
		"keys:\n- id: 1\n  key: " + key + "\nbalance: conga\nscheduler: {servers: ['10.0.0.9:9341'], link_mbit: 10}": {"x.yaml:5: scheduler.servers", "balance: conga"},
		"metrics: {listen: 0.0.0.0:9469}":             {"x.yaml:1: metrics.listen", "metrics.remote"},
		"status: /" + strings.Repeat("x", 200):        {"x.yaml:1: status", "107"},
		"ports: swp\nbalance: two-level":              {"x.yaml:1: ports", "%d"},
		"topology: fat-tree:k=2\nbalance: two-level":  {"x.yaml:2: balance", "one port up each", "use ecmp"},
		"balance: classifier:moves=0":                 {"x.yaml:1: balance", "moves", "from 1 to 64"},
		"topology: fat-tree:k=2\nbalance: classifier": {"x.yaml:2: balance", "one port up each"},
		"configure: false\nbalance: classifier":       {"x.yaml:2: balance", "classifier", "set configure to true"},
		"configure: false\nbalance: two-level":        {"x.yaml:2: balance", "two-level", "set configure to true"},

		"meter:\n  enabled: true\n  qcn: {target: 1ms}": {"x.yaml:3: meter.qcn.target", "without keys", "give keys"},
	} {
		_, err := parse([]byte(text), "x.yaml")
		if err == nil {
			t.Errorf("%q: no error", text)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %q does not say %q", text, err, w)
			}
		}
		if strings.Contains(err.Error(), key) {
			t.Errorf("%q: the message has the secret", text)
		}
	}
}

func TestParse_keys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "k")
	secret := strings.Repeat("s", 32)
	if err := os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString([]byte(secret))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := parse([]byte("keys:\n- id: 7\n  key_file: "+file+"\n- id: 8\n  key_file: "+file+"\n  from: 2027-01-01T00:01:00Z\naccept_unsigned: true\n"), "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	k := f.keys(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
	if len(k.List) != 2 || !k.AcceptUnsigned || k.List[0].ID != 7 || string(k.List[0].Secret) != secret || k.List[0].From != 0 || k.List[1].From != time.Minute {
		t.Errorf("keys %+v", k)
	}
	if past := f.keys(time.Date(2027, 1, 1, 0, 2, 0, 0, time.UTC)); past.List[1].From != -time.Minute {
		t.Errorf("a key of a minute ago is from %v", past.List[1].From)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(defaultYAML)
	f.Add([]byte("keys:\n- id: 1\n  key: abc\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if strings.Contains(string(text), "key_file") || strings.Contains(string(text), "topology") {
			return // reads files; makes large fabrics
		}
		if c, err := parse(text, "x.yaml"); (c == nil) == (err == nil) {
			t.Errorf("%v, %v", c, err)
		}
	})
}
