package dataplane

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"weft/encap"
	"weft/topology"
)

// Classify, cut, choose, wrap: all that egress does to a packet of 1,500 bytes
// but copying it. Flows send bursts of 16 packets, in turn, each to a host of
// its own while there are some.
func BenchmarkEgress(b *testing.B) {
	for _, name := range []string{"ecmp", "drb", "presto", "letflow"} {
		for _, flows := range []int{1, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, flows), func(b *testing.B) { benchmarkEgress(b, name, flows, false) })
			// The same when it is remembered which path has carried what.
			b.Run(fmt.Sprintf("%s/%d/evidence", name, flows), func(b *testing.B) { benchmarkEgress(b, name, flows, true) })
		}
	}
}

func benchmarkEgress(b *testing.B, name string, flows int, remember bool) {
	fabric, _ := topology.FatTree(16) // 1,024 hosts
	e := testEgress(b, fabric, name)
	if remember {
		e.evidence = newEvidence(1, true)
	}
	headers := make([][40]byte, flows)
	for i := range headers {
		to := fabric.EmbeddedAddr(topology.NodeID(64 + i%960)).As4()
		h := headers[i][:]
		copy(h, tcpSegment())
		binary.BigEndian.PutUint16(h[2:], 1500)
		copy(h[16:], to[:])
		binary.BigEndian.PutUint16(h[20:], uint16(i))
	}
	buf := make([]byte, encap.MaxOverhead+1500)
	seq := uint32(0)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		copy(buf[encap.MaxOverhead:], headers[i/16%flows][:])
		seq += 1460 / 16 // each flow gets on
		binary.BigEndian.PutUint32(buf[encap.MaxOverhead+24:], seq)
		if e.wrapOne(buf, time.Duration(i)) == nil {
			b.Fatal(e.stats)
		}
	}
}
