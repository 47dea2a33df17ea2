package schedulerd

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weft/flowcell"
	"weft/hedera"
	"weft/hedera/store/storetest"
	"weft/hedera/wire"
	"weft/topology"
)

const (
	// inMessage is how many flows of IPv4 a message has.
	inMessage = 50
	// inReport is how many a flood's report has: whole messages, at most wire.MaxFlows.
	inReport = 78 * inMessage
)

// flood is nodes that report more than anybody can look at: flows of all sizes to everywhere, of which
// few are good.
type flood struct {
	top     *topology.Topology
	clients []*wire.Client
	flows   []wire.Flow
	rng     *rand.Rand
	next    int
	offered int64 // flows that were sent
	dropped int64 // what unread was at first
}

// unread counts messages that never came to the scheduler's socket: the kernel did not take them, or the
// loopback device had no room.
func (f *flood) unread(t testing.TB) (n int64) {
	for _, c := range f.clients {
		n += int64(c.Status().SendErrors)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	return n + int64(lo.Attrs().Statistics.RxDropped)
}

func newFlood(t testing.TB, s statusOf, top *topology.Topology, hosts []*host) *flood {
	t.Helper()
	f := &flood{top: top, flows: make([]wire.Flow, inReport), rng: rand.New(rand.NewPCG(3, 4))}
	for _, h := range hosts {
		f.clients = append(f.clients, h.client)
	}
	within(t, "all nodes know the leader", func() bool {
		for _, c := range f.clients {
			if c.Status().Leader == "" {
				return false
			}
		}
		return s().Nodes == len(f.clients)
	})
	f.dropped = f.unread(t)
	return f
}

// statusOf asks a server.
type statusOf func() Status

// report has the next node report, if it knows to whom.
func (f *flood) report() bool {
	src := topology.NodeID(f.next % len(f.clients))
	f.next++
	hosts := topology.NodeID(f.top.NumHosts())
	from := flowcell.AddressFrom(f.top.Node(src).Addr)
	for i := range f.flows {
		x := &f.flows[i]
		x.Tuple = flowcell.FiveTuple{Proto: flowcell.ProtoTCP, Src: from, SrcPort: uint16(f.rng.Uint32()), DstPort: uint16(i),
			Dst: flowcell.AddressFrom(f.top.Node((src + topology.NodeID(f.rng.IntN(int(hosts)))) % hosts).Addr)}
		x.Rate = 1 << f.rng.IntN(33)
		if i%16 == 0 {
			x.Tuple.Src = x.Tuple.Dst // another's
		}
	}
	if !f.clients[src].Send(wire.Report{Flows: f.flows}) {
		return false
	}
	f.offered += inReport
	return true
}

// accounted checks that all flows that were sent have been looked at or dropped by the budget, or
// were in messages that were lost as the socket was full, or before; before is the status before the flood.
func (f *flood) accounted(t testing.TB, s statusOf, before Status) (got Status, lost int64) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%d flows were sent, %d are missing; from %+v to %+v", f.offered, lost, before, got)
		}
	}()
	within(t, "each reported flow is accounted for", func() bool {
		got = s()
		lost = f.offered - int64(got.Flows+got.Dropped-before.Flows-before.Dropped)
		return lost <= inMessage*(int64(got.Rejected[reasonOverflow]-before.Rejected[reasonOverflow])+f.unread(t)-f.dropped)
	})
	return got, lost
}

// Nodes report faster than the scheduler looks at flows, by its budget and by its time. Each flow is
// accounted for: looked at, or above a node's budget, or lost with a message for which the socket had no room.
func TestServer_aFloodIsAccountedFor(t *testing.T) {
	s, top := newTestServer(t, func(f hedera.Fabric) hedera.Fabric { return f })
	var hosts []*host
	for h := range topology.NodeID(top.NumHosts()) {
		hosts = append(hosts, newHost(t, top, h, s.file.listen))
	}
	f := newFlood(t, s.status, top, hosts)
	before := s.status()
	for f.offered < 300_000 {
		if !f.report() {
			time.Sleep(time.Millisecond) // until the node hears again who leads
		}
	}
	s.round()
	got, lost := f.accounted(t, s.status, before)
	if lost < 0 || lost%inMessage != 0 {
		t.Errorf("%d flows are lost, which are no whole messages", lost)
	}
	// A host's flows share its link: of elephants at most twelve.
	if most := 12 * top.NumHosts(); got.Known == 0 || got.Known > most || got.Placed > got.Known {
		t.Errorf("%d flows are known and %d placed, want %d at most", got.Known, got.Placed, most)
	}
	for _, reason := range []string{"node", "ends", "small", "rate"} {
		if got.Refused[reason] == 0 {
			t.Errorf("none is refused as %s: %v", reason, got.Refused)
		}
	}
	if got.Rejected["budget"] != got.Dropped-before.Dropped {
		t.Errorf("%d flows are dropped, by %v", got.Dropped, got.Rejected)
	}
}

// BenchmarkRun_flood is weft scheduler with etcd, in this process, in a flood of a million flows a second,
// for b.N seconds: what it looks at, what it loses, its memory and time, which include the nodes' and
// etcd's. It fails if the leader is lost, or a good flow its path.
func BenchmarkRun_flood(b *testing.B) {
	for _, nodes := range []int{16, 120} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) { runFlood(b, nodes, 1_000_000) })
	}
}

func runFlood(b *testing.B, nodes, flowsPerSecond int) {
	top, err := topology.Parse(manyHosts)
	if err != nil {
		b.Fatal(err)
	}
	r := startIn(b, manyHosts, storetest.New(b, 1), "ttl: 3s", "period: 1s\nlifetime: 6s\n")
	within(b, "the scheduler leads", func() bool { return r.status().Leads })
	var hosts []*host
	for h := range topology.NodeID(nodes) {
		hosts = append(hosts, newHost(b, top, h, r.at))
	}
	f := newFlood(b, r.status, top, hosts)
	// A node that reports one flow, and no more.
	good := newHost(b, top, 127, r.at)
	tuple := tupleOf(top, 127, 0)
	placed := func() bool {
		if good.client.Send(wire.Report{Flows: []wire.Flow{{Tuple: tuple, Rate: 9e8}}}) {
			f.offered++
		}
		all, _ := good.paths()
		return len(all) == 1
	}
	within(b, "the good flow is placed", placed)
	before := r.status()
	used, start := cpu(), time.Now()
	var most uint64
	every := time.Duration(float64(time.Second) * inReport / float64(flowsPerSecond))
	f.offered = 0
	b.ResetTimer()
	for i := 0; time.Since(start) < time.Duration(b.N)*time.Second; i++ {
		f.report()
		if i%64 == 0 {
			most = max(most, heap())
			placed()
		}
		time.Sleep(time.Until(start.Add(time.Duration(i+1) * every)))
	}
	b.StopTimer()
	took := time.Since(start).Seconds()
	b.ReportMetric((cpu()-used).Seconds()/took, "cpus")
	offered := f.offered
	got, _ := f.accounted(b, r.status, before)
	if !got.Leads || got.Terms != before.Terms || got.Epoch != before.Epoch {
		b.Errorf("the leader was lost: %+v", got)
	}
	within(b, "the good flow is placed after the flood", placed)
	b.ReportMetric(float64(offered)/took, "offered/s")
	b.ReportMetric(float64(got.Flows-before.Flows)/took, "looked-at/s")
	b.ReportMetric(float64(got.Dropped-before.Dropped)/took, "over-budget/s")
	b.ReportMetric(float64(got.Rejected[reasonOverflow]-before.Rejected[reasonOverflow])*inMessage/took, "lost/s")
	b.ReportMetric(float64(most)/(1<<20), "MB-heap")
	b.ReportMetric(float64(got.Rounds-before.Rounds)/took, "rounds/s")
	b.ReportMetric(float64(got.EtcdErrors-before.EtcdErrors), "etcd-errors")
	text, _ := json.Marshal(got)
	b.Logf("status: %s", text)
}

// cpu is the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
