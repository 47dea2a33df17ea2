package lab

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
)

// Thesis Fig. 5.14: with RED the queue is shorter than with tail drop. Fig. 5.10: with
// either, the virtual queue is within two full packets of the real one 95 % of the time. Here
// that is hard: no queue but that of tail drop is ever empty or full, so no error would be
// forgotten. The log has the figures: -v prints them.
func TestMeter_REDShortensTheQueue(t *testing.T) {
	slowtest.System(t)
	red := func(maxP float64, mark bool) fabric.RED {
		return fabric.RED{Min: fabric.QueueLength{Time: 4 * time.Millisecond}, Max: fabric.QueueLength{Time: 12 * time.Millisecond},
			MaxP: maxP, Gentle: true, Mark: mark}
	}
	kerneltest.OnTime(t, func() string {
		tail, within := queueUnder(t, "tail drop", fabric.RED{})
		if within < 0.95 {
			return fmt.Sprintf("tail drop: %.1f %% of the estimates are within two packets, want 95 %%", within*100)
		}
		for name, r := range map[string]fabric.RED{"RED, max_p 0.02": red(0.02, false), "RED, max_p 0.1": red(0.1, false), "RED, max_p 0.1, marks": red(0.1, true)} {
			switch mean, within := queueUnder(t, name, r); {
			case mean >= tail:
				return fmt.Sprintf("%s: a mean of %.0f bytes of queue, with tail drop %.0f", name, mean, tail)
			case within < 0.95:
				return fmt.Sprintf("%s: %.1f %% of the estimates are within two packets, want 95 %%", name, within*100)
			}
		}
		return ""
	})
}

// queueUnder has four connections share a link of 20 Mbit/s. It returns the mean of its queue
// in bytes, and in which share of samples the virtual queue was within two packets of it.
//
// The token bucket holds 16 ms. A timer that is later than what it holds makes the real link
// slower than its rate, and from then on the virtual queue would be too short.
func queueUnder(t *testing.T, name string, red fabric.RED) (mean, within float64) {
	t.Helper()
	l, edge, up := slowLink(t, "20", Config{BurstBytes: 40_000, GSOMaxBytes: 2048, Meter: &Meter{RED: red}})
	defer Down(l.Config.Name)
	boundedInBytes(t, l, edge.ID, up)
	hosts := kerneltest.Hosts(l.Config.Topology)
	for _, h := range hosts {
		err := l.Do(h.ID, func() error {
			_, err := new(fabric.Report).SetSysctls([]kernel.Sysctl{
				{Key: "net.ipv4.tcp_ecn", Value: map[bool]string{false: "0", true: "1"}[red.Mark]},
				{Key: "net.ipv4.tcp_congestion_control", Value: "reno"},
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	f := measureQueue(t, l, edge, up, name, tcp{})
	return f.mean, f.near
}

// queueFigures are of a port whose link four connections share.
type queueFigures struct {
	mean, p99    float64 // bytes of real queue
	mbit         float64 // of payload that arrives
	near         float64 // share of samples in which the virtual queue was within two packets
	marks, drops uint64
}

// measureQueue has four connections share the link of a port, which is on the way of what
// the first host sends.
func measureQueue(t *testing.T, l *Lab, edge topology.Node, up int, name string, how tcp) (f queueFigures) {
	t.Helper()
	hosts := kerneltest.Hosts(l.Config.Topology)
	how.received = new(atomic.Int64)
	if how.back {
		slices.Reverse(hosts)
	}
	for range 4 {
		defer transfer(t, l, hosts[0], hosts[1], how)()
	}
	kerneltest.Within(t, kerneltest.Patience, "the connections have found their rates", func() bool {
		return portMeter(t, l, edge.ID, up).Bytes > 2_000_000
	})
	before, arrived, start := portMeter(t, l, edge.ID, up), how.received.Load(), time.Now()
	var queue []float64
	near, longer := 0, 0.0
	for time.Since(start) < 3*time.Second {
		real, virtual := readQueues(t, l, edge, up)
		queue = append(queue, real)
		longer += virtual - real
		if math.Abs(real-virtual) <= 2*1514 {
			near++
		}
		time.Sleep(500 * time.Microsecond)
	}
	m, elapsed := portMeter(t, l, edge.ID, up), time.Since(start)
	slices.Sort(queue)
	for _, q := range queue {
		f.mean += q / float64(len(queue))
	}
	f.p99, f.mbit = queue[len(queue)*99/100], float64(how.received.Load()-arrived)*8/elapsed.Seconds()/1e6
	f.marks, f.drops = m.Marks-before.Marks, m.Drops-before.Drops
	f.near = float64(near) / float64(len(queue))
	t.Logf("%s: queue mean %.0f, p99 %.0f bytes of %d samples; virtual within two packets of real %.1f %%, on average %+.0f bytes; goodput %.2f Mbit/s; %d marks, %d early and %d forced drops, %d at the queue",
		name, f.mean, f.p99, len(queue), 100*f.near, longer/float64(len(queue)), f.mbit,
		f.marks, m.RED.EarlyDrops-before.RED.EarlyDrops, m.RED.ForcedDrops-before.RED.ForcedDrops, f.drops)
	return f
}

// readQueues returns the real queue, and which of the virtual ones before and after it is
// nearer to it.
func readQueues(t *testing.T, l *Lab, edge topology.Node, up int) (real, virtual float64) {
	t.Helper()
	before := float64(portMeter(t, l, edge.ID, up).Length)
	ports, err := l.PortBytes(edge.ID)
	if err != nil {
		t.Fatal(err)
	}
	after := float64(portMeter(t, l, edge.ID, up).Length)
	real = float64(ports[up].Backlog)
	if math.Abs(before-real) < math.Abs(after-real) {
		return real, before
	}
	return real, after
}

// boundedInBytes gives a port a queue under its token bucket that is bounded in bytes, as
// MeterPort.QueueBytes is. That of a lab, pfifo_fast, is bounded in packets, however long:
// one may be a super-segment, and up to 16 places in it stay taken by what has left.
func boundedInBytes(t *testing.T, l *Lab, id topology.NodeID, port int) {
	t.Helper()
	n, err := l.node(id)
	if err != nil {
		t.Fatal(err)
	}
	// Its bound is the device's txqueuelen, which the lab has set, in full frames.
	fifo := &netlink.GenericQdisc{QdiscType: "bfifo", QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: n.links[port].Attrs().Index, Handle: netlink.MakeHandle(2, 0), Parent: netlink.MakeHandle(1, 1)}}
	if err := n.QdiscReplace(fifo); err != nil {
		t.Fatal(err)
	}
}
