package switchconf

import (
	"strings"
	"testing"

	"weft/internal/discover"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/graphtest"
	"weft/topology/graph/operator"
)

// again is the graph that is read from the file that is written of a graph.
func again(t *testing.T, g *graph.Graph) *graph.Graph {
	t.Helper()
	text, _, err := Containerlab(g, ContainerlabOptions{Name: "x", Dir: "x", Exec: func(graph.NodeID) []string { return []string{`echo "a: b"`} }})
	if err != nil {
		t.Fatal(err)
	}
	f, err := discover.Containerlab(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(f.Guesses) > 0 {
		t.Errorf("guessed %q of\n%s", f.Guesses, text)
	}
	read, err := graph.New(f.Spec)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return read
}

func TestContainerlab_roundTrip(t *testing.T) {
	var all []graph.Spec
	for _, spec := range []string{"leaf-spine:leaves=4,spines=4,hosts=2", "fat-tree:k=4,core-rate=12.5"} {
		top, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, operator.Spec(top, 7))
	}
	for seed := range uint64(50) {
		s := graphtest.Random(seed)
		for i := range s.Links {
			s.Links[i].Ports = [2]string{"a" + string(rune('0'+i/80)) + string(rune('0'+i%80)), "b" + string(rune('0'+i/80)) + string(rune('0'+i%80))}
		}
		all = append(all, s)
	}
	for i, s := range all {
		g, err := graph.New(s)
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if got, want := string(again(t, g).Text()), string(g.Text()); got != want {
			t.Errorf("%d:\n%s\nwant\n%s", i, got, want)
		}
	}
	g := parse(t, strings.Replace(text, "prefixes: [192.168.2.64/26]}", "as: 7, sids: {node: \"fc00::/48\"}}", 1))
	if got, want := string(again(t, g).Text()), string(g.Text()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestContainerlab_filesAndErrors(t *testing.T) {
	g := parse(t, strings.Replace(text, "[192.168.2.64/26]}", "[192.168.2.64/26], as: 65102}", 1))
	file, others, err := Containerlab(g, ContainerlabOptions{Name: "x", Dir: "there", Options: Options{BFD: true}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(file), `- "there/leaf1.conf:/etc/frr/frr.conf"`) || strings.Contains(string(file), "exec:") {
		t.Errorf("%s", file)
	}
	if len(others) != 4 || !strings.Contains(others["leaf1.conf"], "swp1 bfd") || !strings.Contains(others["daemons"], "bfdd=yes") {
		t.Errorf("%q", others)
	}
	g = parse(t, strings.Replace(text, ", ports: [swp3, eth0]", "", 1))
	if _, _, err := Containerlab(g, ContainerlabOptions{}); err == nil || !strings.Contains(err.Error(), "leaf2 has no AS") {
		t.Error(err)
	}
	g = parse(t, strings.Replace(strings.Replace(text, ", ports: [swp3, eth0]", "", 1), "[192.168.2.64/26]}", "[192.168.2.64/26], as: 65102}", 1))
	if _, _, err := Containerlab(g, ContainerlabOptions{}); err == nil || !strings.Contains(err.Error(), "has no name") {
		t.Error(err)
	}
}
