package report

import (
	"math"
	"strings"
	"testing"

	"weft/topology"
)

func TestFormat(t *testing.T) {
	plain := func(s string) string { return strings.ReplaceAll(s, narrowSpace, " ") }
	for _, tt := range []struct{ got, want string }{
		{digits(0), "0"},
		{digits(0.456), "0.46"},
		{digits(9.994), "9.99"},
		{digits(9.996), "10.0"},
		{digits(99.94), "99.9"},
		{digits(99.96), "100"},
		{digits(-1234.5), "-1 235"},
		{count(0), "0"},
		{count(999), "999"},
		{count(1000), "1 000"},
		{count(-1000), "-1 000"},
		{count(-123), "-123"},
		{count(1234567), "1 234 567"},
		{round(2.5), "2.5"},
		{round(0.1 + 0.2), "0.3"},
		{round(40000), "40 000"},
		{percent(95.34), "95.3 %"},
		{mbit(19.13), "19.1 Mbit/s"},
		{mbit(9400), "9.40 Gbit/s"},
		{micros(853.2), "853 µs"},
		{micros(1240), "1.24 ms"},
		{micros(2.5e6), "2.50 s"},
		{decade(-1), "0.1 µs"},
		{decade(2), "100 µs"},
		{decade(3), "1 ms"},
		{decade(6), "1 s"},
	} {
		if plain(tt.got) != tt.want {
			t.Errorf("got %q, want %q", plain(tt.got), tt.want)
		}
	}
}

func TestNiceStep(t *testing.T) {
	for _, tt := range []struct{ top, want float64 }{
		{100, 20}, {19.1, 5}, {20, 5}, {0, 1}, {7, 2}, {36000, 10000}, {0.3, 0.1},
	} {
		if got := niceStep(tt.top, 5); math.Abs(got-tt.want) > 1e-12*tt.want {
			t.Errorf("niceStep(%v) = %v, want %v", tt.top, got, tt.want)
		}
	}
}

func TestUseClass(t *testing.T) {
	for _, tt := range []struct {
		use  float64
		want string
	}{{0, "u0"}, {0.009, "u0"}, {0.01, "u1"}, {0.2, "u2"}, {0.5, "u3"}, {0.79, "u4"}, {1, "u5"}, {1.2, "u5"}, {1e300, "u5"}} {
		if got := useClass(tt.use); got != tt.want {
			t.Errorf("useClass(%v) = %s, want %s", tt.use, got, tt.want)
		}
	}
}

// TestLayout checks for several fabrics that no two nodes of a layer overlap,
// that they stand in the order of their numbers, inside the picture, and those
// of a pod within its box.
func TestLayout(t *testing.T) {
	for _, k := range []int{2, 4, 6, 8} {
		topo, err := topology.FatTree(k)
		if err != nil {
			t.Fatal(err)
		}
		l := newLayout(topo)
		if len(l.boxes) != k {
			t.Errorf("k=%d: %d pods", k, len(l.boxes))
		}
		picture := newFabric(l, topo, 0, Row{Links: make([]LinkUse, topo.NumLinks())})
		for i, g := range picture.Nodes {
			if g.Left() < -8 || g.Left()+g.Width > fabricWidth+8 {
				t.Errorf("k=%d: %s is outside the picture", k, g.Title)
			}
			if i > 0 && picture.Nodes[i-1].Y == g.Y {
				if before := picture.Nodes[i-1]; before.Left()+before.Width > g.Left() {
					t.Errorf("k=%d: %s and %s overlap", k, before.Title, g.Title)
				}
			}
		}
		perPod := topo.NumHosts() / k
		for h := range topo.Hosts() {
			box := l.boxes[int(h.ID)/perPod]
			if x := l.x[h.ID]; x < box.X || x > box.X+box.Width {
				t.Errorf("k=%d: %s is outside its pod", k, h.Name)
			}
			edge := topo.EdgeOf(h.ID)
			if x := l.x[edge]; x < box.X || x > box.X+box.Width {
				t.Errorf("k=%d: the edge switch of %s is outside its pod", k, h.Name)
			}
		}
	}
}
