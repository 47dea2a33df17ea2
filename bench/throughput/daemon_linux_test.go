package throughput

import (
	"net/netip"
	"path/filepath"
	"testing"

	"weft/internal/daemon"
	"weft/internal/service"
	"weft/liveness"
)

// A daemon's status says whether packets to the peer go plain; other racks do not matter.
func TestAskPlain(t *testing.T) {
	for _, x := range []struct {
		rack  string
		plain bool
	}{{"10.0.1.0/24", true}, {"10.0.2.0/24", false}} {
		s := daemon.Status{
			Racks:    []daemon.RackStatus{{Prefix: x.rack, Plain: true}},
			Failures: &daemon.FailureStatus{Probes: map[string]any{"watcher": liveness.Stats{GivenUp: 3}}},
		}
		socket := filepath.Join(t.TempDir(), "s")
		c, err := service.ServeStatus(socket, nil, func() any { return s }, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		now, givenUp, err := askPlain(t.Context(), socket, netip.MustParseAddr("10.0.1.7"))
		if now != x.plain || givenUp != 3 || err != nil {
			t.Errorf("%s: %v, %d times, %v", x.rack, now, givenUp, err)
		}
	}
}
