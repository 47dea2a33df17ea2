package daemon

import (
	"testing"

	"weft/internal/slowtest"
)

// With several queues nothing is lost: each of 40 connections carries data both
// ways, whose packets go out by the TUN and come in by it.
func TestRun_manyQueues(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	gateway := dataplanes[1]
	for _, host := range []string{"h0.0.2", "h3.1.3"} {
		n.start(host, "policy: drb\ntun: {queues: 4}\n", gateway.env)
	}
	for range 40 {
		p := n.connect("h0.0.2", "h3.1.3")
		p.exchange(20_000)
		p.a.Close()
		p.b.Close()
	}
}
