package testbed

import "testing"

func TestCounterOf(t *testing.T) {
	const text = "Tcp: a b c\nTcp: 1 2 3\nTcpExt: b d\nTcpExt: 4 -5\nShort: a b\nShort: 1\n"
	for _, c := range []struct {
		group, name string
		want        int64
		fails       bool
	}{
		{"Tcp:", "b", 2, false}, {"TcpExt:", "b", 4, false}, {"TcpExt:", "d", -5, false},
		{"TcpExt:", "a", 0, true}, {"Tcp", "b", 0, true}, {"Short:", "b", 0, true},
	} {
		if got, err := counterOf(text, c.group, c.name); got != c.want || (err != nil) != c.fails {
			t.Errorf("%s %s: %d, %v", c.group, c.name, got, err)
		}
	}
}

// This kernel has all of them.
func TestAddKernel(t *testing.T) {
	var c Counters
	if err := c.addKernel(); err != nil {
		t.Error(err)
	}
}
