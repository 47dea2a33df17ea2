package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"weft/bench/asymmetry"
	"weft/bench/fct"
	"weft/bench/reorder"
	"weft/bench/simfile"
	"weft/internal/table"
)

// Every table is laid out by package table, so that it fits; text/tabwriter is for lists of names
// in help, and for names with their values.
func TestTables_areOfOnePackage(t *testing.T) {
	lists := []string{"bench.go", "benchasymmetry.go", "benchfcthelp.go", "benchapps_linux.go", "benchthroughput_linux.go", "hoststatus.go", "scheduler.go", "archive.go"}
	for _, pattern := range []string{"*.go", "../../bench/*/*.go", "../../internal/*/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) < 20 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, []byte("tabwriter.NewWriter(")) && !strings.HasSuffix(name, "_test.go") && !slices.Contains(lists, filepath.Base(name)) {
				t.Errorf("%s: lay the table out by weft/internal/table", name)
			}
		}
	}
}

// Tables with the figures that runs give are no wider than 100 letters.
func TestTables_fit(t *testing.T) {
	big := 123456.789
	many := fct.Result{Policy: "switch-letflow:gap=60ms", Where: fct.Switch, Load: 0.75, SizeClass: "100 KB to 1 MB", Flows: 12345, Begun: 12000, Unfinished: 345,
		MeanMs: 12345.6, MeanLowMs: 1234, MeanHighMs: 23456, P50Ms: 123.4, P95Ms: &big, P99Ms: &big, P999Ms: &big, SlowdownP50: 123.45, SlowdownP99: &big, SYNRetransmits: 1234, Timeouts: 12345, IdlePercent: 12, Void: true, Rounds: 3, Failed: 1}
	sim := simfile.Result{Policy: "switch-conga", Load: &big, Flows: 123456, Unfinished: 1234, MeanMs: big, MeanLowMs: big, MeanHighMs: big, P50Ms: big, P95Ms: &big, P99Ms: &big, P999Ms: &big, MaxMs: big, LastMs: big, Jobs: 7, JobMeanMs: &big, JobP99Ms: &big, GoodputMbit: 9412.3, Retransmits: 123456, Timeouts: 1234, Drops: 12345, OutOfOrderPercent: 12.34, MaxQueueBytes: 1e6}
	for name, write := range map[string]func(b *bytes.Buffer) error{
		"fct":      func(b *bytes.Buffer) error { return fctTable(b, 4, fctHead, fctRows([]fct.Result{many, many})) },
		"beside":   func(b *bytes.Buffer) error { return fctTable(b, 3, besideHead, besideRows([]fct.Result{many, many})) },
		"simfile":  func(b *bytes.Buffer) error { h, r := simFileTable([]simfile.Result{sim}); return fctTable(b, 2, h, r) },
		"failover": func(b *bytes.Buffer) error { return failoverTable(b, failoverResults()) },
		"resequencer": func(b *bytes.Buffer) error {
			return resequencerTable(b, []reorder.Result{{Case: "bursts-uniform", Impl: "gvisor-segments", Flows: 1000000, NsPerPacket: 1234.5, NsPerPacketMin: 1000, NsPerPacketMax: 12345, AllocsPerPacket: 1.2345, HeldBytesMax: 1e8, OutOfOrder: 0.1234, DeliveredSegments: 12.34, Config: "Flows 1048576, Packets 4194304"}})
		},
		"asymmetry": func(b *bytes.Buffer) error {
			return asymmetryTable(b, []asymmetry.Result{{Topology: "leaf-spine, one link at a tenth", Policy: "flowcell-drb", Encap: "srv6", PercentOfIdeal: 98.7, GoodputMbit: 1234.5, MiceP50: 1e6, MiceP99: 1e7, Retransmits: 123456, IdlePercent: 55}})
		},
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > table.Width && !strings.HasPrefix(line, "ns/packet:") {
				t.Errorf("%s: %d letters:\n%s", name, n, b.String())
				break
			}
		}
		if testing.Verbose() {
			t.Logf("%s:\n%s", name, b.String())
		}
	}
}
