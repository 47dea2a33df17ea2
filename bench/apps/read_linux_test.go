package apps

import (
	"os"
	"testing"

	"weft/bench/stats"
	"weft/topology"
)

// Programs print a 99th percentile of any number of requests. Of less than 100 it is their maximum,
// and no figure.
func TestRead_p99NeedsRequests(t *testing.T) {
	for _, c := range []struct {
		app, sample string
		bytes       int // of 100 requests
		want        float64
	}{{"redis", "redis.csv", 2 * 100 * redisValue, 4.415}, {"nginx", "wrk.txt", 100 * nginxPage, 4.61}} {
		text, err := os.ReadFile("output/testdata/" + c.sample)
		if err != nil {
			t.Fatal(err)
		}
		for bytes, want := range map[int]float64{c.bytes: c.want, c.bytes - 1: 0} {
			got, err := works[c.app].read(&site{bytes: bytes}, topology.Node{}, string(text))
			if err != nil || got != want {
				t.Errorf("%s, %d bytes: %g, %v; want %g", c.app, bytes, got, err, want)
			}
		}
	}
	if a, b := p99Of(7, 100), p99Of(7, 99); a != 7 || b != 0 {
		t.Errorf("%g, %g", a, b)
	}
	// What a client moves by default is enough.
	s := &site{bytes: 1 << 20}
	for app, n := range map[string]int{"redis": redis{}.requests(s), "nginx": nginx{}.pages(s), "pgbench": pgClients * pgbench{}.transactions(s)} {
		if !stats.Enough(n, 99) {
			t.Errorf("%s: %d requests", app, n)
		}
	}
}
