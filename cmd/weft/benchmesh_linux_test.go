package main

import (
	"encoding/json"
	"strings"
	"testing"

	"weft/bench/membership"
	"weft/internal/slowtest"
)

func TestBenchMesh(t *testing.T) {
	slowtest.Unraced(t) // package membership has it with the race detector
	if err := membership.CheckPrograms(); err != nil {
		t.Skip(err)
	}
	var r membership.Result
	out := mustWeft(t, "bench", "mesh", "--hosts", "5", "--kills", "1", "--quiet", "2s", "--renew", "2s", "--ttl", "2s", "--linger", "6s", "--json")
	out = out[max(strings.Index(out, "{\n"), 0):] // where it is from comes before
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r.Failed() != "" || r.Kills != 1 || len(r.Rows) == 0 {
		t.Errorf("%s", out)
	}
}

func TestBenchMesh_flags(t *testing.T) {
	wantError(t, "bench mesh --hosts 2", "--hosts")
	wantError(t, "bench mesh --kills -1", "--kills")
	wantError(t, "bench mesh --ttl 1500ms", "--ttl")
	wantError(t, "bench mesh --renew 0s", "--renew")
	wantError(t, "bench mesh --linger 10s", "--linger")
	wantError(t, "bench mesh --encryption none", "--encryption")
}
