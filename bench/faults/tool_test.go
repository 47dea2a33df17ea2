package faults

import (
	"errors"
	"strings"
	"testing"
)

// What a tool says first is what its reader sees first, in one line.
func TestSaid(t *testing.T) {
	failed := errors.New("exit status 1")
	for _, test := range []struct {
		name   string
		tool   Tool
		output string
		failed error
		known  []string
		want   Said
	}{
		{"well", Status, "host 10.0.0.2: SPRAYED, to 7 racks by all paths\nmode offload\n\nPATH BY  STATE\nc1.1  up\n", nil, nil, Said{}},
		{"well, with a note", Status, "host 10.0.0.2: SPRAYED, to 7 racks by all paths\nmode offload\n\n- 1 change of others undone,\n  the latest: x\n  do: y\n- another\n\nPATH BY\n", nil, nil,
			Said{First: "- 1 change of others undone, the latest: x do: y", Cause: "- 1 change of others undone, the latest: x"}},
		{"degraded", Status, "host 10.0.0.2: DEGRADED, 2 faults: a\nmode offload\n\n! a\n  do: b\n! c\n  do: d\n", nil, nil,
			Said{First: "host 10.0.0.2: DEGRADED, 2 faults: a ! a do: b", Cause: "host 10.0.0.2: DEGRADED, 2 faults: a ! a", Alarm: true}},
		{"nobody", Status, "status: connection refused\n", failed, nil, Said{First: "status: connection refused", Cause: "status: connection refused", Alarm: true}},
		{"a switch", Status, "switch a0.2: WELL, all of 4 ports up\nabout\n", nil, nil, Said{}},
		{"nothing hurts", Blame, "nothing hurts: no path\n", nil, nil, Said{}},
		{"something hurts", Blame, "1. a0.2-c1.1  loses 2 %\n   packets lost to: h3.1.3 7\n2. c1.2  x\n", nil, nil,
			Said{First: "1. a0.2-c1.1  loses 2 % packets lost to: h3.1.3 7", Cause: "1. a0.2-c1.1  loses 2 % packets lost to: h3.1.3 7", Alarm: true}},
		{"all right", Doctor, `[{"check":"a","ok":true}]`, nil, nil, Said{}},
		{"a check fails", Doctor, `[{"check":"a","ok":true},{"check":"b","ok":false,"cause":"x","fix":"y"},{"check":"c","ok":false}]`, failed, nil,
			Said{First: "b: x y", Cause: "b: x", Alarm: true, Check: "b: x"}},
		{"one fails always", Doctor, `[{"check":"b","ok":false,"cause":"x","fix":"y"},{"check":"c","ok":false,"cause":"z"}]`, failed, []string{"b: x"},
			Said{First: "c: z", Cause: "c: z", Alarm: true, Check: "c: z"}},
		{"a node is wrong", Fabric, `[{"node":"c1.1","check":"b","ok":false,"cause":"x","fix":"y"}]`, failed, []string{"b: x"},
			Said{First: "c1.1: b: x y", Cause: "c1.1: b: x", Alarm: true, Check: "c1.1: b: x"}},
		{"the doctor fails", Doctor, "doctor: no such file", failed, nil, Said{First: "doctor: no such file", Cause: "doctor: no such file", Alarm: true}},
	} {
		got, err := test.tool.said(test.output, test.failed, test.known)
		if err != nil || got != test.want {
			t.Errorf("%s: %+v, %v, want %+v", test.name, got, err, test.want)
		}
	}
	if _, err := Doctor.said("no JSON", nil, nil); err == nil || !strings.Contains(err.Error(), "no JSON") {
		t.Errorf("%v", err)
	}
}

func TestCause(t *testing.T) {
	c := Cause{{"C1.1", "slow"}, {"link a0.2-c1.1"}}
	for sentence, want := range map[string]bool{"Link A0.2-c1.1 is down": true, "c1.1 is SLOW": true, "c1.1 is down": false, "": false} {
		if c.In(sentence) != want {
			t.Errorf("%q: %v", sentence, !want)
		}
	}
}

// A key of YAML goes with all that is below it.
func TestWithout(t *testing.T) {
	if got := without("a: 1\nb:\n  c:\n  - d\ne: f\n", "b:"); got != "a: 1\ne: f\n" {
		t.Errorf("%q", got)
	}
}
