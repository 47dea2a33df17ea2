package wire

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// BenchmarkCost is what a flow costs on the wire, by how many there are: to sign reports at nodes and
// placements at the scheduler, in time and in bytes of UDP payload. A node has at most MaxFlows in a report.
func BenchmarkCost(b *testing.B) {
	var rng uint64
	next := func() uint64 { rng += 0x9e3779b97f4a7c15; return rng }
	node, err := NewNode(NodeConfig{Fabric: 5, Address: hostAddr, Servers: serverAt[:1], Keys: secret, Random: next}, 0)
	if err != nil {
		b.Fatal(err)
	}
	desk, err := NewDesk(DeskConfig{Fabric: 5, Keys: secret, Known: func(netip.Addr) bool { return true }, Random: next})
	if err != nil {
		b.Fatal(err)
	}
	desk.Lead(true, serverAt[0], 1)
	answer := func(_ netip.AddrPort, m []byte) { node.Receive(m, serverAt[0], 0) }
	for i := range time.Duration(2) {
		node.Poll(i*HelloEvery, func(_ netip.AddrPort, m []byte) { desk.Receive(m, hostAt, 0, answer) })
	}
	for _, six := range []bool{false, true} {
		family := map[bool]string{false: "IPv4", true: "IPv6"}[six]
		var flows []Flow
		var places []Placement
		for n := range MaxFlows {
			flows = append(flows, flowOf(n, six))
			places = append(places, Placement{Tuple: flows[n].Tuple, Path: n % 256, Via: via, For: time.Second})
		}
		bytes := 0
		count := func(_ netip.AddrPort, m []byte) { bytes += len(m) }
		for _, side := range []struct {
			name   string
			encode func(n int) bool
		}{
			{"reports", func(n int) bool { return node.Report(Report{flows[:n]}, 0, count) }},
			{"placements", func(n int) bool { return desk.Place(hostAddr, places[:n], 0, count) }},
		} {
			for _, all := range []int{1000, 100_000, 1_000_000} {
				b.Run(fmt.Sprintf("%s/%s/flows=%d", side.name, family, all), func(b *testing.B) {
					bytes = 0
					for range b.N {
						for left := all; left > 0; left -= MaxFlows {
							if !side.encode(min(left, MaxFlows)) {
								b.Fatal("there is no leader")
							}
						}
					}
					each := float64(b.N) * float64(all)
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/each, "ns/flow")
					b.ReportMetric(float64(bytes)/each, "B/flow")
				})
			}
		}
	}
}
