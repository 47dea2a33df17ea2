package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"weft/bench/reorder"
)

// shortBench is a run that takes milliseconds.
var shortBench = strings.Fields("bench resequencer --rounds 2 --duration 2ms --flows 1,50")

func TestBenchResequencer_json(t *testing.T) {
	var out, notes bytes.Buffer
	cmd := newRootCmd()
	cmd.SetOut(&out)
	cmd.SetErr(&notes)
	cmd.SetArgs(append(shortBench, "--json"))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	rows := make(map[string]bool)
	for _, o := range list {
		want := []string{"allocs_per_packet", "case", "delivered_segments", "flows", "held_bytes_max", "impl",
			"ns_per_packet", "ns_per_packet_max", "ns_per_packet_min", "out_of_order", "run"}
		if got := slices.Sorted(maps.Keys(o)); !slices.Equal(got, want) {
			t.Fatalf("fields %v, want %v", got, want)
		}
		for name, v := range o {
			if name == "run" {
				continue
			}
			_, isText := v.(string)
			if isText != (name == "case" || name == "impl") {
				t.Errorf("%s is %v", name, v)
			}
		}
		rows[o["case"].(string)+" "+o["impl"].(string)] = true
	}
	if want := (6 + 3*2) * 5; len(list) != want {
		t.Errorf("%d objects, want %d", len(list), want)
	}
	for _, c := range reorder.Cases() {
		for _, i := range reorder.Impls() {
			if !rows[c.Name+" "+i.Name] {
				t.Errorf("%s of %s is missing", c.Name, i.Name)
			}
		}
	}
	if !strings.Contains(notes.String(), newRunInfo(0, 0).machine()) {
		t.Errorf("the machine is not told beside the array: %s", notes.String())
	}
}

func TestBenchResequencer_table(t *testing.T) {
	out := mustWeft(t, append(shortBench, "--cases", "cells-4,receive-core", "--impls", "sorted-list,presto")...)
	for _, want := range []string{newRunInfo(0, 0).machine(), "ns/packet", "allocs/packet"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table does not say %q:\n%s", want, out)
		}
	}
	var rows []string
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 3 && (f[1] == "presto" || f[1] == "sorted-list") && !slices.Contains(rows, strings.Join(f[:3], " ")) {
			rows = append(rows, strings.Join(f[:3], " "))
		}
	}
	want := []string{"cells-4 presto 1", "cells-4 sorted-list 1", "receive-core presto 1", "receive-core sorted-list 1", "receive-core presto 50", "receive-core sorted-list 50"}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %v, want %v\n%s", rows, want, out)
	}
}

func TestBenchResequencer_bad(t *testing.T) {
	const bench = "bench resequencer "
	wantError(t, bench+"--cases in-order,worst", "--cases", `"worst"`, "known: in-order", "receive-core")
	wantError(t, bench+"--impls linux", "--impls", `"linux"`, "known: presto", "sorted-list")
	wantError(t, bench+"--flows 0", "--flows=0", "1 to 4194304")
	wantError(t, bench+"--flows 10,99999999", "--flows=10 99999999", "1 to 4194304")
	wantError(t, bench+"--flows many", "--flows", "many")
	wantError(t, bench+"--flows=", "--flows")
	wantError(t, bench+"--rounds 0", "--rounds=0", "1 to 1000")
	wantError(t, bench+"--rounds 1001", "--rounds=1001")
	wantError(t, bench+"--duration -1s", "--duration=-1s", "1.2µs")
	wantError(t, bench+"--duration 1us", "--duration=1µs", "1.2µs")
	wantError(t, bench+"--duration 4s --rounds 11", "--duration=4s --rounds=11", "40s")
	wantError(t, bench+"--duration 1000000h --rounds 1000", "--duration")
	wantError(t, bench+"now", "now")
}

func TestDisturbed(t *testing.T) {
	quiet, busy := reorder.Result{NsPerPacket: 14, NsPerPacketMin: 10}, reorder.Result{NsPerPacket: 16, NsPerPacketMin: 10}
	if n := disturbed([]reorder.Result{quiet, busy, quiet}); n != 1 {
		t.Errorf("%d rows are disturbed, want 1", n)
	}
}
