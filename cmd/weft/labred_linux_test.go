package main

import (
	"strings"
	"testing"
	"time"

	"weft/fabric"
)

func TestParseRED(t *testing.T) {
	got, err := parseRED("4ms,90000,0.02", "mark")
	if want := (fabric.RED{Min: fabric.QueueLength{Time: 4 * time.Millisecond}, Max: fabric.QueueLength{Bytes: 90_000}, MaxP: 0.02, Gentle: true, Mark: true}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := parseRED("", "drop"); err != nil || got != (fabric.RED{}) {
		t.Errorf("nothing is %+v, %v", got, err)
	}
	for want, c := range map[string][2]string{
		"use drop or mark":    {"1,2", "kill"},
		"MIN,MAX,MAX_P":       {"1", "drop"},
		"such as 65us":        {"1,fast", "drop"},
		`"x" is not a number`: {"1,2,x", "drop"},
	} {
		if _, err := parseRED(c[0], c[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", c, err, want)
		}
	}
}
