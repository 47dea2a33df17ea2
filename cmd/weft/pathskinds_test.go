package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/golden"
)

// What is printed for every kind of fabric, with weights and groups where
// there are any; reviewed by eye.
func TestPaths_golden(t *testing.T) {
	uneven := filepath.Join("testdata", "uneven.yaml")
	for name, args := range map[string]string{
		"paths-vl2.txt":        "--topology vl2:d0=2,d1=4,d2=4,hosts=2 --from h0.0.2 --to h0.3.3 -n 5",
		"paths-vl2-group.txt":  "--topology vl2:d0=2,d1=4,d2=4,hosts=2 --from h0.0.2 --to h0.1.3",
		"paths-leaf-spine.txt": "--topology leaf-spine:leaves=3,spines=3,hosts=2 --policy rrb --from h0.0.2 --to h0.2.3",
		"paths-uneven.txt":     "--topology " + uneven + " --from h1.0.2 --to h0.0.2",
		"paths-uneven.json":    "--json --topology " + uneven + " --policy rrb --from h1.0.2 --to h0.0.2",
	} {
		golden.Check(t, name, mustWeft(t, strings.Fields("paths "+args)...))
	}
}

// A virtual spine's paths bounce at its own address, which is not the
// physical switch's.
func TestPaths_virtualSpinesHaveAddresses(t *testing.T) {
	out := mustWeft(t, strings.Fields("paths --json --topology vl2:d0=2,d1=4,d2=4,hosts=2 --from h0.0.2 --to h0.3.3")...)
	var got []step
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"3.0 10.255.1.1 c1.1", "3.2 10.255.2.1 c1.1", "3.1 10.255.1.2 c1.2", "3.3 10.255.2.2 c1.2"} {
		if s := got[i]; s.Bounce+" "+s.Address+" "+s.Hops[3] != want {
			t.Errorf("choice %d: %+v, want %s", i, s, want)
		}
	}
}

func TestPlan_otherKinds(t *testing.T) {
	for args, want := range map[string][]string{
		"--topology vl2:d0=2,d1=4,d2=4,hosts=2 --node 3.3": {
			"core switch of vl2:d0=2,d1=4,d2=4,hosts=2", "ip address replace 10.255.1.2/32 dev lo", "ip address replace 10.255.2.2/32 dev lo",
		},
		"--topology leaf-spine:leaves=3,spines=2,hosts=1 --node a0.1": {
			"ip address replace 10.255.1.1/32 dev lo", "ip route replace 10.0.2.0/24",
		},
		"--topology " + filepath.Join("testdata", "uneven.yaml") + " --node e0.1": {
			"ip address replace 10.0.1.1/32 dev lo",
		},
	} {
		out := mustWeft(t, strings.Fields("plan "+args)...)
		for _, s := range want {
			if !strings.Contains(out, s) {
				t.Errorf("plan %s: no %q in\n%s", args, s, out)
			}
		}
	}
	wantError(t, "plan --node 3.0 --topology leaf-spine:leaves=3,spines=2,hosts=1", "3.0", "a0.0 to a0.1")
	wantError(t, "plan --node e0.0 --topology none.yaml", "none.yaml", "no such file")
}
