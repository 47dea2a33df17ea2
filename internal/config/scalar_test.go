package config

import "testing"

func TestScalar(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"status: /run/x.sock\n", "/run/x.sock"}, {"nosuchkey: 1\nstatus: off\n", "off"}, {"status: auto\n", ""}, {"policy: drb\n", ""},
		{"", ""}, {"- a\n", ""}, {"status: [a]\n", ""}, {"a: {status: b}\n", ""}, {"{", ""},
	} {
		if got := Scalar([]byte(c.text), "status"); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
