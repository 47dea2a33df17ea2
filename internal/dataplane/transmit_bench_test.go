package dataplane

import (
	"testing"
	"time"

	"weft/link"
)

type sinkhole struct{ SuperDevice }

func (sinkhole) MTU() int                                  { return 1520 }
func (sinkhole) Close() error                              { return nil }
func (sinkhole) Read([][]byte, []int, int) (int, error)    { panic(1) }
func (sinkhole) Write(b [][]byte, _ int) (int, error)      { return len(b), nil }
func (sinkhole) WriteSuper(b [][]byte, _ int) (int, error) { return len(b), nil }
func (sinkhole) WriteParts([][]byte) error                 { return nil }
func (sinkhole) MaxSuper() int                             { return link.MaxSuperLen }

type plainhole struct{}

func (plainhole) MTU() int                               { return 1520 }
func (plainhole) Close() error                           { return nil }
func (plainhole) Read([][]byte, []int, int) (int, error) { panic(1) }
func (plainhole) Write(b [][]byte, _ int) (int, error)   { return len(b), nil }

// BenchmarkTransmit is all of egress, up to the device.
func BenchmarkTransmit(b *testing.B) {
	for _, c := range []struct {
		name, policy string
		dev          Device
		uplink       bool
		segments     int
	}{
		{"plain/packet", "drb", plainhole{}, false, 0}, {"super/packet", "presto", sinkhole{}, false, 0},
		{"super/cut45", "presto", sinkhole{}, false, 45}, {"super/each45", "drb", sinkhole{}, false, 45}, {"super/whole45", "presto", sinkhole{}, true, 45},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := testEgress(b, fatTree, c.policy, func(k *Config) { k.Device, k.UplinkEncapsulates = c.dev, c.uplink })
			var o *Outgoing
			if c.segments > 0 {
				o = superSegment(c.segments)
			} else {
				o = new(Outgoing)
			}
			p := dataPacket(1, 1000)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if c.segments == 0 {
					o.Begin(len(p))
					o.Parts = append(o.Parts, p)
				}

				e.transmit(o, time.Duration(i))
			}
		})
	}
}
