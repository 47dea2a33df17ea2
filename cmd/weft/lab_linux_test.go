package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"weft/lab"
)

func TestLab_bad(t *testing.T) {
	wantError(t, "lab up --name a-b", "lab name")
	wantError(t, "lab up --encap mpls", "mpls", "srv6")
	wantError(t, "lab up --encap srv6 --mtu 1000", "1280")
	wantError(t, "lab exec --name nosuchlab h0.0.2 true", "nosuchlab is not up", "weft lab up --name nosuchlab")
	wantError(t, "lab status --name nosuchlab", "nosuchlab is not up")
	wantError(t, "lab exec h0.0.2", "give a node and a command")
}

func TestLab_metered(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	name := fmt.Sprintf("t%dy", os.Getpid())
	t.Cleanup(func() { lab.Down(name) })
	up := []string{"lab", "up", "--name", name, "--topology", "fat-tree:k=2", "--ecn", "30000"}
	mustWeft(t, up...)
	if out := mustWeft(t, up...); !strings.Contains(out, "is up already") {
		t.Errorf("up again says %s", out)
	}
	wantError(t, strings.Join(append(up, "--ecn", "20000"), " "), "in use", "metered")
	table := mustWeft(t, "lab", "status", "--name", name)
	if n := strings.Count(table, " 20 "); n != 10 || !strings.Contains(table, "e1.0 p1") || strings.Contains(table, "h0.0.2 p0") {
		t.Errorf("status has %d metered ports, want the switches' 10:\n%s", n, table)
	}
}

func TestLab(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	name := fmt.Sprintf("t%dz", os.Getpid())
	t.Cleanup(func() {
		if _, err := lab.Down(name); err != nil {
			t.Error(err)
		}
	})
	up := []string{"lab", "up", "--name", name, "--topology", "fat-tree:k=2"}
	if out := mustWeft(t, up...); !strings.Contains(out, name+" is up: fat-tree:k=2, 2 hosts, 5 switches, 6 links of 20 Mbit/s") {
		t.Errorf("up says %s", out)
	}
	if out := mustWeft(t, up...); !strings.Contains(out, "is up already") {
		t.Errorf("up again says %s", out)
	}
	wantError(t, strings.Join(append(up, "--rate", "30"), " "), "in use", "weft lab down --name "+name)
	wantError(t, "lab exec --name "+name+" h7.0.2 -- true", "h7.0.2")
	wantError(t, "lab exec --name "+name+" h0.0.2 -- no-such-program", "no-such-program")
	var nodes []lab.NodeStatus
	if err := json.Unmarshal([]byte(mustWeft(t, "lab", "status", "--json", "--name", name)), &nodes); err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 7 {
		t.Errorf("status has %d nodes, want 7", len(nodes))
	}
	table := mustWeft(t, "lab", "status", "--name", name)
	if lines := strings.Count(table, "\n"); lines != 10 || !strings.Contains(table, "agents run on 0 of 5 switches") || !strings.Contains(table, "c1.1") {
		t.Errorf("status prints %d lines, want 10:\n%s", lines, table)
	}
	if out := mustWeft(t, "lab", "fail", "--name", name, "c1.1-a0.1"); !strings.Contains(out, "a0.1-c1.1 FAILED") {
		t.Errorf("fail says %s", out)
	}
	if out := mustWeft(t, "lab", "fail", "--silent", "--name", name, "e0.0"); !strings.Contains(out, "a0.1-c1.1 FAILED, e0.0 SILENT\n") {
		t.Errorf("fail --silent says %s", out)
	}
	wantError(t, "lab fail --data-only --name "+name+" e0.0", "failed already (silent)")
	if out := mustWeft(t, "lab", "status", "--name", name); !strings.Contains(out, "a0.1-c1.1 FAILED, e0.0 SILENT\n") {
		t.Errorf("status says %s", out)
	}
	if out := mustWeft(t, "lab", "heal", "--name", name); !strings.Contains(out, "nothing has been made to fail") {
		t.Errorf("heal says %s", out)
	}
	if out := mustWeft(t, "lab", "down", "--name", name); !strings.Contains(out, "7 namespaces removed") {
		t.Errorf("down says %s", out)
	}
	if out := mustWeft(t, "lab", "down", "--name", name); !strings.Contains(out, "was not up") {
		t.Errorf("down again says %s", out)
	}
}
