package lab

import (
	"fmt"
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
)

// RED keeps the kernel's TCP from filling a queue: packets are dropped early, or marked if
// TCP negotiates ECN, the average settles below Max, and from then on the queue itself
// drops nothing.
func TestMeter_REDSlowsTCP(t *testing.T) {
	slowtest.System(t)
	red := fabric.RED{
		Min: fabric.QueueLength{Time: 4 * time.Millisecond}, Max: fabric.QueueLength{Time: 12 * time.Millisecond}, Gentle: true,
	}
	for _, mark := range []bool{false, true} {
		t.Run(fmt.Sprintf("mark %v", mark), func(t *testing.T) {
			red := red
			red.Mark = mark
			l, edge, up := slowLink(t, "20", Config{Meter: &Meter{RED: red}})
			hosts := kerneltest.Hosts(l.Config.Topology)
			ecn := "0"
			if mark {
				ecn = "1"
			}
			for _, h := range hosts {
				err := l.Do(h.ID, func() error {
					_, err := new(fabric.Report).SetSysctls([]kernel.Sysctl{
						{Key: "net.ipv4.tcp_ecn", Value: ecn},
						{Key: "net.ipv4.tcp_congestion_control", Value: "reno"},
					})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			defer transfer(t, l, hosts[0], hosts[1], tcp{})()
			kerneltest.OnTime(t, func() string {
				before := portMeter(t, l, edge.ID, up)
				if before.RED.Min != 10_000 || before.RED.Max != 30_000 {
					t.Fatalf("the port of 20 Mbit/s has %+v", before.RED)
				}
				var most uint64
				m := before
				for end := time.Now().Add(20 * time.Second); m.Bytes < before.Bytes+2_000_000; time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						return "hardly anything is sent"
					}
					m = portMeter(t, l, edge.ID, up)
					most = max(most, m.RED.Average)
				}
				t.Logf("average at most %d, then %+v", most, m)
				marks, early := m.Marks-before.Marks, m.RED.EarlyDrops-before.RED.EarlyDrops
				switch {
				case mark && marks == 0, !mark && (early == 0 || marks != 0):
					return fmt.Sprintf("%d marks and %d early drops", marks, early)
				case most == 0 || most >= 2*m.RED.Max || m.RED.ForcedDrops != before.RED.ForcedDrops || m.Drops != before.Drops:
					return fmt.Sprintf("average at most %d of %d; %d forced drops, %d at the queue", most, m.RED.Max, m.RED.ForcedDrops-before.RED.ForcedDrops, m.Drops-before.Drops)
				}
				return ""
			})
		})
	}
}
