package daemon

import (
	"errors"
	"testing"

	"weft/internal/config"
)

// The key of a misfit is the one that the error was made for, whatever words are in it.
func TestKeyOf(t *testing.T) {
	l := config.Of("x.yaml")
	for _, c := range []struct {
		err  error
		want string
	}{
		{l.Errorf("address", "topology: no"), "address"},
		{l.Errorf("uplink", "%w", l.Errorf("mtu", "no")), "uplink"},
		{errors.Join(l.Errorf("uplink", "a"), l.Errorf("uplink", "b")), "uplink"},
		{l.Errorf("udp.peers[0].name", "no"), "udp.peers[0].name"},
		{errors.New("rp_filter: gateway: no"), ""},
	} {
		if got := keyOf(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
