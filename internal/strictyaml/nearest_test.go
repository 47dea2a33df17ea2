package strictyaml

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"policy", "policy", 0}, {"policie", "policy", 2}, {"kitten", "sitting", 3}, {"ab", "ba", 2}, {"mode", "moed", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if a, b := distance(c.a, c.b), distance(c.b, c.a); a != b {
			t.Errorf("distance(%q, %q) is %d one way and %d the other", c.a, c.b, a, b)
		}
	}
}
