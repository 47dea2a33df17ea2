package lab

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/kernel/kerneltest"
)

func TestFailures_transitions(t *testing.T) {
	c := Config{Name: "x", Topology: kerneltest.Topology(t, "fat-tree:k=2")}
	for _, test := range []struct {
		before, after failures
		want          string // link:from>to
	}{
		{nil, nil, ""},
		{nil, failures{"e0.0-a0.1": FailLoud}, "e0.0-a0.1:>loud"},
		{failures{"e0.0-a0.1": FailLoud}, nil, "e0.0-a0.1:loud>"},
		{nil, failures{"a0.1": FailSilent}, "e0.0-a0.1:>silent a0.1-c1.1:>silent"},
		// The strongest counts, whichever came first.
		{failures{"a0.1": FailSilent}, failures{"a0.1": FailSilent, "e0.0": FailLoud}, "h0.0.2-e0.0:>loud e0.0-a0.1:silent>loud"},
		{failures{"a0.1": FailSilent, "c1.1": FailSilentData}, failures{"c1.1": FailSilentData}, "e0.0-a0.1:silent> a0.1-c1.1:silent>silent-data"},
		{failures{"a0.1": FailLoud, "c1.1": FailLoud}, failures{"c1.1": FailLoud}, "e0.0-a0.1:loud>"},
	} {
		steps, err := c.transitions(test.before, test.after)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range steps {
			got = append(got, fmt.Sprintf("%s:%s>%s", c.Topology.LinkName(s.link), s.from, s.to))
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("from %v to %v: %q, want %q", test.before, test.after, got, test.want)
		}
	}
}

// A lab that is built in part has only the links between what is built.
func TestFailures_onlyWhatIsBuilt(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	c := Config{Name: "x", Topology: top}
	for _, name := range []string{"h0.0.2", "e0.0", "a0.2"} {
		n, err := top.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		c.Only = append(c.Only, n.ID)
	}
	if got, err := c.target("a0.2"); err != nil || len(got.links) != 1 {
		t.Errorf("a0.2 has links %v, %v; want that to e0.0 alone", got.links, err)
	}
	for _, s := range []string{"a0.3", "e0.0-a0.3"} {
		if _, err := c.target(s); err == nil || !strings.Contains(err.Error(), s+": lab x was built without it") {
			t.Errorf("%s: error %v", s, err)
		}
	}
}
