package store

import (
	"fmt"
	"testing"

	"weft/hedera"
	"weft/hedera/store/storetest"
)

// BenchmarkCost is what a placement costs on etcd, of one member in this process that does not wait for
// its disk: to write it, and to read it when a leader begins.
func BenchmarkCost(b *testing.B) {
	c := configOf(storetest.New(b, 1), "a")
	term, err := Campaign(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	for _, flows := range []int{1000, 65536} {
		var list []hedera.Assignment
		for n := range flows {
			list = append(list, assignmentOf(n, n%256))
		}
		perFlow := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(flows), "ns/flow")
		}
		b.Run(fmt.Sprintf("write/flows=%d", flows), func(b *testing.B) {
			for b.Loop() {
				if err := term.Write(b.Context(), list, nil); err != nil {
					b.Fatal(err)
				}
			}
			perFlow(b)
			size := 0
			for _, a := range list {
				r, err := c.Client.Get(b.Context(), c.keyOf(a.Tuple))
				if err != nil || len(r.Kvs) != 1 {
					b.Fatalf("%v, %v", r, err)
				}
				size += len(r.Kvs[0].Key) + len(r.Kvs[0].Value)
				if a.Tuple.SrcPort == 999 {
					break
				}
			}
			b.ReportMetric(float64(size)/float64(min(1000, flows)), "B/flow")
		})
		b.Run(fmt.Sprintf("load/flows=%d", flows), func(b *testing.B) {
			for b.Loop() {
				if got, _, err := Load(b.Context(), c, flows); err != nil || len(got) != flows {
					b.Fatalf("%d of %d placements, %v", len(got), flows, err)
				}
			}
			perFlow(b)
		})
	}
}
