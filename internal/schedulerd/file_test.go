package schedulerd

import (
	"strings"
	"testing"
)

const testKeyLines = "keys:\n- {id: 1, key: c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M=}\n"

func TestParse_defaultsAreValid(t *testing.T) {
	f, err := parse([]byte(strings.Replace(DefaultYAML(), "keys: []\n", testKeyLines, 1)), "default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	empty, err := parse([]byte(testKeyLines), "empty.yaml")
	if err != nil || !f.sameButNews(empty) {
		t.Errorf("the defaults are not those of an empty file: %v", err)
	}
	if p := f.prefix(); !strings.HasPrefix(p, "/weft/hedera/") || len(p) != len("/weft/hedera/")+16 {
		t.Errorf("the keys' prefix is %s", p)
	}
}

func TestParse_refusals(t *testing.T) {
	for text, want := range map[string]string{
		"topology: fat-tree:k=5":           "topology",
		"listen: 0.0.0.0:9341":             "listen: is",
		"listen: here":                     "listen: is",
		"etcd: {endpoints: []}":            "etcd.endpoints",
		"etcd: {endpoints: [http://a:1/]}": "etcd.endpoints",
		"etcd: {prefix: weft}":             "etcd.prefix",
		"etcd: {ttl: 10ms}":                "etcd.ttl",
		"etcd: {cert: a.pem}":              "etcd.cert",
		"etcd: {ca: /nowhere/ca.pem}":      "etcd.ca",
		"rule: anealing":                   "rule",
		"iterations: -1":                   "iterations",
		"period: 1ms":                      "period",
		"lifetime: 61s":                    "at most 1m0s",
		"period: 16s":                      "from 10ms to 15s",
		"topology: fat-tree:k=4":           "without a rate",
		"topology: \"fat-tree:k=4,host-rate=1000,fabric-rate=.nan,core-rate=1000\"": "topology",
		"log: {level: info}":         "keys: is empty",
		"lifetime: 5999ms":           "lifetime: is 5.999s, must be at least etcd.ttl and three periods, 6s",
		"etcd: {ttl: 8s}":            "etcd.ttl, which is 8s",
		"threshold: 0.0":             "threshold",
		"threshold: 1.5":             "threshold",
		"updates: {interface: eth0}": "updates.address",
		"updates: {interface: eth0, address: 10.9.9.9}":              "updates.address",
		"updates: {interface: eth0, address: 10.0.0.2, max_age: 0s}": "updates.max_age",
		"max_flows: 0":                        "max_flows",
		"keys: [{id: 0}]":                     "keys[0].id",
		"metrics: {listen: \"0.0.0.0:9469\"}": "metrics",
		"log: {level: loud}":                  "log.level",
		"perriod: 1s":                         "did you mean period?",
		"period: 1s\nperiod: 2s":              "period",
	} {
		_, err := parse([]byte(text), "s.yaml")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "s.yaml:") {
			t.Errorf("%q: %v, want an error with the line and %q", text, err, want)
		}
	}
}
