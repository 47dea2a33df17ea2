package spray

import (
	"strings"
	"testing"
	"time"

	"weft/policy"
)

func TestNewHosts_errorsNameTheField(t *testing.T) {
	topo := parse(t, leafSpine)
	for want, c := range map[string]HostsConfig{
		"Topology":      {Policy: "drb"},
		`policy "x"`:    {Topology: topo, Policy: "x"},
		"Samples":       {Topology: topo, Policy: "luopan", Options: policy.Options{Samples: -1}},
		"Tau":           {Topology: topo, Policy: "conga", Tau: -1},
		"FlowcellBytes": {Topology: topo, Policy: "presto", Options: policy.Options{FlowcellBytes: 5}},
	} {
		if _, err := NewHosts(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestHosts_allocateNothingPerPacket(t *testing.T) {
	for _, name := range policy.Names() {
		h := hostsOf(t, name, fatTree, 1)
		var f Flow
		h.Open(&f, 0, 12, tuple(0, 12, 1))
		now := time.Duration(0)
		forget := func(Probe) {}
		one := func() {
			now += 10 * time.Microsecond
			path, _ := h.Data(&f, 0, 1460, 1500, now)
			h.Ack(&f, 0)
			if h.Marks() {
				m := h.DataMark(&f, path, now)
				h.Received(&f, m, false, now)
				h.Received(&f, h.AckMark(&f, now), true, now)
			}
			h.Probes(now, forget)
		}
		for range 200 {
			one()
		}
		if n := testing.AllocsPerRun(500, one); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkData(b *testing.B) {
	for _, name := range policy.Names() {
		b.Run(name, func(b *testing.B) {
			h := hostsOf(b, name, fatTree, 1)
			var f Flow
			h.Open(&f, 0, 12, tuple(0, 12, 1))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				h.Data(&f, uint32(1460*i), 1460, 1500, time.Duration(i)*time.Microsecond)
			}
		})
	}
}

func BenchmarkUp(b *testing.B) {
	for _, name := range SwitchNames() {
		b.Run(name, func(b *testing.B) {
			s := newSwitch(b, SwitchConfig{Topology: parse(b, leafSpine), Name: name, Seed: 1}, queues{})
			p := Packet{Src: 0, Dst: 12, Bytes: 1500}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p.Hash = uint64(i % 50)
				s.Up(16, 0, &p, time.Duration(i)*time.Microsecond)
			}
		})
	}
}
