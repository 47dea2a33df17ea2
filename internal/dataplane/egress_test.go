package dataplane

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
	"weft/policy"
	"weft/topology"
)

// testEgress is that of the first embedded stack of a fabric.
func testEgress(t testing.TB, fabric *topology.Topology, name string, change ...func(*Config)) *Egress {
	t.Helper()
	near, _ := link.NewPair(1520, 1)
	c := Config{Address: fabric.EmbeddedAddr(0), Topology: fabric, Device: near, Policy: name, Samples: true, Seed: 1}
	for _, f := range change {
		f(&c)
	}
	e, err := NewEgress(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// wrapped is what became of a packet.
type wrapped struct {
	bounce string // a core's number; "" for a direct packet, "none" for one that was dropped
	inner  []byte
	number flowcell.Number
}

func wrapOne(t testing.TB, e *Egress, packet []byte, now time.Duration) wrapped {
	t.Helper()
	out := e.wrapOne(append(make([]byte, encap.MaxOverhead), packet...), now)
	if out == nil {
		return wrapped{bounce: "none"}
	}
	var w wrapped
	if out[9] == flowcell.ProtoIPIP {
		var err error
		if w.inner, err = encap.Decapsulate(out); err != nil {
			t.Fatal(err)
		}
		if df := out[6] & 0x40; df != w.inner[6]&0x40 {
			t.Errorf("outer DF is %02x, inner %02x", df, w.inner[6]&0x40)
		}
		id, _ := fatTree.ByAddr(netip.AddrFrom4([4]byte(out[16:20])))
		core, _ := fatTree.CoreNumber(id)
		w.bounce = fmt.Sprintf("3.%d", core)
	} else {
		w.inner = out
	}
	if !header.IPv4(w.inner).IsChecksumValid() {
		t.Errorf("bad checksum: %x", w.inner[:20])
	}
	w.number = flowcell.Number(binary.BigEndian.Uint16(w.inner[4:]))
	return w
}

var cores = []string{"3.0", "3.1", "3.2", "3.3"}

// next is the core after another, as round robin goes.
func next(core string) string { return cores[(slices.Index(cores, core)+1)%4] }

func TestWrap_flowcellsKeepToOnePathEach(t *testing.T) {
	for name, order := range map[string][]string{
		"presto":       {"3.0", "3.1", "3.2", "3.3"},
		"flowcell-drb": {"3.0", "3.2", "3.1", "3.3"},
	} {
		e := testEgress(t, fatTree, name)
		packet := dataPacket(1, 1448)
		first := wrapOne(t, e, packet, 0)
		at := slices.Index(order, first.bounce)
		for i := 1; i < 2000; i++ {
			w := wrapOne(t, e, packet, 0)
			cell, index := i/45, i%45 // 45 segments of 1448 bytes are 64 KB nearly
			if want := order[(at+cell)%4]; w.bounce != want {
				t.Fatalf("%s: packet %d by %s, want %s", name, i, w.bounce, want)
			}
			if want := flowcell.MakeNumber(first.number.Cell()+uint16(cell), uint8(index)); w.number != want {
				t.Fatalf("%s: packet %d is number %04x, want %04x", name, i, w.number, want)
			}
			if w.inner[6] != 0x40 || w.inner[7] != 0 {
				t.Fatalf("%s: packet %d: flags %x, want DF", name, i, w.inner[6:8])
			}
			if !bytes.Equal(w.inner[12:], packet[12:]) || !bytes.Equal(w.inner[:4], packet[:4]) {
				t.Fatalf("%s: packet %d has changed elsewhere", name, i)
			}
		}
	}
}

func TestWrap_flowcellBytesAreConfigured(t *testing.T) {
	e := testEgress(t, fatTree, "presto", func(c *Config) { c.PolicyOptions.FlowcellBytes = 3000 })
	start := wrapOne(t, e, dataPacket(1, 1000), 0)
	for i := 1; i < 30; i++ {
		if w := wrapOne(t, e, dataPacket(1, 1000), 0); int(w.number.Cell()) != (int(start.number.Cell())+i/3)%1024 {
			t.Fatalf("packet %d of 1000 bytes is number %04x after %04x", i, w.number, start.number)
		}
	}
}

// Flows share the pair's selector, as Presto has it, but no cells.
func TestWrap_flowsAreCutApart(t *testing.T) {
	e := testEgress(t, fatTree, "presto")
	var starts []wrapped
	for port := range uint16(8) {
		starts = append(starts, wrapOne(t, e, dataPacket(port, 1448), 0))
	}
	numbers := map[flowcell.Number]bool{}
	for port, s := range starts {
		if port > 0 && s.bounce != next(starts[port-1].bounce) {
			t.Errorf("flow %d begins with %s after %s", port, s.bounce, starts[port-1].bounce)
		}
		w := wrapOne(t, e, dataPacket(uint16(port), 1448), 0)
		if w.bounce != s.bounce || w.number != s.number+1 {
			t.Errorf("flow %d: %04x by %s after %04x by %s", port, w.number, w.bounce, s.number, s.bounce)
		}
		numbers[s.number] = true
	}
	if len(numbers) < 7 {
		t.Errorf("8 flows begin with %d different numbers", len(numbers))
	}
}

func TestWrap_onlyDataIsCutAndNumbered(t *testing.T) {
	with := func(b []byte, edit func([]byte)) []byte {
		edit(b)
		return fixed(b)
	}
	flags := func(f byte) []byte { return with(dataPacket(1, 0), func(b []byte) { b[33] = f }) }
	udp := with(dataPacket(1, 100), func(b []byte) { b[9] = flowcell.ProtoUDP })
	fragment := with(dataPacket(1, 104), func(b []byte) { b[6] = 0x20 })
	rack := with(dataPacket(1, 1448), func(b []byte) { copy(b[16:], []byte{10, 0, 0, 131}) })
	for _, name := range []string{"presto", "letflow"} {
		e := testEgress(t, fatTree, name)
		data := wrapOne(t, e, dataPacket(1, 1448), 0)
		for what, packet := range map[string][]byte{
			"pure ACK": flags(flowcell.FlagACK), "FIN": flags(flowcell.FlagFIN | flowcell.FlagACK), "RST": flags(flowcell.FlagRST),
			"UDP": udp, "a fragment": fragment, "of the same rack": rack,
		} {
			var used []string
			for range 8 {
				w := wrapOne(t, e, packet, 0)
				if !bytes.Equal(w.inner, packet) {
					t.Errorf("%s, %s: changed", name, what)
				}
				used = append(used, w.bounce)
			}
			slices.Sort(used)
			want := 1
			if what == "pure ACK" {
				want = 4
			}
			if n := len(slices.Compact(used)); n != want && !(name == "letflow" && want == 4 && n > 1) {
				t.Errorf("%s, %s: by %d paths, want %d", name, what, n, want)
			}
			if (what == "FIN" || what == "RST") && used[0] != data.bounce {
				t.Errorf("%s, %s goes by %s, the flow's last data went by %s", name, what, used[0], data.bounce)
			}
		}
		again := wrapOne(t, e, dataPacket(1, 1448), 0)
		if again.bounce != data.bounce || name == "presto" && again.number != data.number+1 {
			t.Errorf("%s: the cell goes on with %04x by %s after %04x by %s", name, again.number, again.bounce, data.number, data.bounce)
		}
		if s := e.stats; s.Direct != 8 || e.flows.Len() != 1 {
			t.Errorf("%s: %d flows are remembered, %+v", name, e.flows.Len(), s)
		}
	}
	// Connections that never carry data, such as answers to a flood of SYNs,
	// take no place.
	e := testEgress(t, fatTree, "presto")
	for port := range uint16(100) {
		w := wrapOne(t, e, with(dataPacket(port, 0), func(b []byte) { b[33] = flowcell.FlagSYN | flowcell.FlagACK }), 0)
		if w.bounce == "none" || w.number != 0 {
			t.Fatalf("SYN %d: %04x by %s", port, w.number, w.bounce)
		}
	}
	if n := e.flows.Len(); n != 0 {
		t.Errorf("%d flows are remembered of SYNs", n)
	}
}

// Who sprays without flowcells counts, so that the receiver can tell what is
// late from what was sent again; and never so that it looks like flowcells.
func TestWrap_othersCountOrLeaveTheIDAlone(t *testing.T) {
	for _, name := range policy.Names() {
		p, _ := policy.New(name, policy.Options{})
		e := testEgress(t, fatTree, name)
		packet := dataPacket(1, 1448)
		binary.BigEndian.PutUint16(packet[4:], 0xbeef)
		fixed(packet)
		var last flowcell.Number
		for i := range 1000 {
			w := wrapOne(t, e, packet, 0)
			switch {
			case p.Aware == policy.Informed: // says something else there, see marks_test.go
			case !p.Sprays():
				if !bytes.Equal(w.inner, packet) {
					t.Fatalf("%s: number %04x", name, w.number)
				}
			case !p.Unit.Numbers():
				if i > 0 && w.number != last.Count() || w.number.Index() == 0 {
					t.Fatalf("%s: number %04x after %04x", name, w.number, last)
				}
				last = w.number
			}
		}
		if n := e.flows.Len(); (n == 1) != p.Unit.Cuts() {
			t.Errorf("%s remembers %d flows", name, n)
		}
	}
}

func TestWrap_flowletsFollowPauses(t *testing.T) {
	const gap, seed = 500 * time.Microsecond, 8
	e := testEgress(t, fatTree, "letflow")
	rng := rand.New(rand.NewPCG(seed, 0))
	now := time.Duration(0)
	last := wrapOne(t, e, dataPacket(1, 100), now)
	used := map[string]int{last.bounce: 1}
	for i := range 5000 {
		pause := time.Duration(rng.IntN(int(2 * gap)))
		now += pause
		w := wrapOne(t, e, dataPacket(1, 100), now)
		if w.bounce != last.bounce && pause <= gap {
			t.Fatalf("seed %d: packet %d goes by %s after %v, the one before by %s", seed, i, w.bounce, pause, last.bounce)
		}
		used[w.bounce]++
		last = w
	}
	for _, c := range cores {
		if used[c] < 1000 {
			t.Errorf("seed %d: paths were used %v times", seed, used)
		}
	}
}

// Numbers go on where paths change: the receiver knows nothing of it.
func TestWrap_topologyChangeBeginsACell(t *testing.T) {
	e := testEgress(t, fatTree, "presto")
	packet := dataPacket(1, 1448)
	first := wrapOne(t, e, packet, 0)
	dead, _ := fatTree.Lookup(first.bounce)
	e.SetTopology(fatTree.WithoutNode(dead.ID))
	fin := dataPacket(1, 0)
	fin[33] |= flowcell.FlagFIN
	for range 8 {
		if w := wrapOne(t, e, fin, 0); w.bounce == first.bounce {
			t.Fatalf("FIN by the dead %s", w.bounce)
		}
	}
	for i := range 45 {
		w := wrapOne(t, e, packet, 0)
		if w.bounce == first.bounce {
			t.Fatalf("packet %d by the dead %s", i, w.bounce)
		}
		if want := flowcell.MakeNumber(first.number.Cell()+1, uint8(i)); w.number != want {
			t.Fatalf("packet %d is number %04x, want %04x", i, w.number, want)
		}
	}
}

// With no path live all are tried: who says so may be wrong.
func TestWrap_lastResort(t *testing.T) {
	for _, name := range policy.Names() {
		e := testEgress(t, fatTree, name)
		packet := dataPacket(1, 1448)
		wrapOne(t, e, packet, 0)
		cut := fatTree
		for _, agg := range []string{"a0.2", "a0.3"} {
			n, _ := fatTree.Lookup(agg)
			cut = cut.WithoutNode(n.ID)
		}
		e.SetTopology(cut)
		used := map[string]bool{}
		for range 8 {
			w := wrapOne(t, e, packet, 0)
			used[w.bounce] = true
		}
		if used["none"] || (name == "drb" || name == "rrb") && len(used) != 4 {
			t.Errorf("%s: by %v, want all paths", name, used)
		}
		if e.stats.NoPath != 0 || e.stats.Encapsulated != 9 {
			t.Errorf("%s: %+v", name, e.stats)
		}
		// One that is known to live is better than all.
		link, err := fatTree.LinkByName("e0.0-a0.2")
		if err != nil {
			t.Fatal(err)
		}
		core, _ := fatTree.Lookup("c1.1")
		up, _ := fatTree.LinkByName("a0.2-c1.1")
		e.SetTopology(cut.With(link.ID, up.ID))
		if w := wrapOne(t, e, dataPacket(2, 1448), 0); w.bounce != "3.0" && w.bounce != "0" {
			t.Errorf("%s: by %s though only %s is live", name, w.bounce, core.Name)
		}
	}
}

func TestWrap_countsFlowsForgotten(t *testing.T) {
	e := testEgress(t, fatTree, "presto")
	packet := dataPacket(0, 100)
	const more = 500
	for i := range maxFlows + more {
		binary.BigEndian.PutUint16(packet[20:], uint16(i))
		packet[12+3] = byte(100 + i>>16)
		wrapOne(t, e, fixed(packet), time.Duration(i))
	}
	if s, _ := e.Stats(); s.FlowsEvicted != more || e.flows.Len() != maxFlows {
		t.Errorf("%d flows, %d forgotten; want %d and %d", e.flows.Len(), s.FlowsEvicted, maxFlows, more)
	}
}

// Two destinations in turn must not get each other's pair.
func TestWrap_destinationsInTurn(t *testing.T) {
	e := testEgress(t, fatTree, "rrb")
	other := dataPacket(1, 100)
	copy(other[16:], []byte{10, 2, 1, 131})
	fixed(other)
	last := [2]string{}
	for i := range 40 {
		for k, packet := range [][]byte{dataPacket(1, 100), other} {
			w := wrapOne(t, e, packet, 0)
			if i > 0 && w.bounce != next(last[k]) {
				t.Fatalf("packet %d to destination %d by %s after %s", i, k, w.bounce, last[k])
			}
			last[k] = w.bounce
		}
	}
}

func TestWrap_allocatesNothing(t *testing.T) {
	for i, name := range slices.Concat(policy.Names(), policy.Names()) {
		e := testEgress(t, fatTree, name, func(c *Config) { c.Carrier = encap.Carrier(i / len(policy.Names())) })
		packet := dataPacket(1, 1400) // which any Carrier has room for
		buf := append(make([]byte, encap.MaxOverhead), packet...)
		now := time.Duration(0)
		if n := testing.AllocsPerRun(200, func() {
			copy(buf[encap.MaxOverhead:], packet)
			now += 300 * time.Microsecond
			if e.wrapOne(buf, now) == nil {
				t.Fatal(e.stats)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a packet", name, n)
		}
	}
}

func FuzzWrap(f *testing.F) {
	f.Add(uint8(4), dataPacket(1, 100))
	f.Add(uint8(4), dataPacket(1, 0))
	f.Add(uint8(6), echoRequest())
	var all []*Egress
	for _, name := range policy.Names() {
		all = append(all, testEgress(f, fatTree, name))
	}
	f.Fuzz(func(t *testing.T, which uint8, packet []byte) {
		e := all[int(which)%len(all)]
		e.mu.Lock()
		defer e.mu.Unlock()
		before := e.stats
		buf := append(make([]byte, encap.MaxOverhead), packet...)
		out := e.wrapOne(buf, 0)
		sent := func(s EgressStats) uint64 { return s.Encapsulated + s.Direct }
		dropped := func(s EgressStats) uint64 { return s.Malformed + s.NoPath + s.TooLong }
		if (out != nil) != (sent(e.stats) == sent(before)+1) || (out == nil) != (dropped(e.stats) == dropped(before)+1) {
			t.Fatalf("%x: %d bytes to send; %+v after %+v", packet, len(out), e.stats, before)
		}
		if out == nil {
			return
		}
		inner := buf[encap.MaxOverhead:]
		var was, is flowcell.Packet
		if err, err2 := was.Parse(packet), is.Parse(inner); err != nil || err2 != nil {
			t.Fatalf("%x is sent: %v, %v", packet, err, err2)
		}
		was.ID, is.ID = 0, 0
		valid := func(b []byte) bool { return b[0]>>4 == 4 && header.IPv4(b).IsChecksumValid() }
		if was != is || !bytes.Equal(packet[12:], inner[12:]) || valid(packet) != valid(inner) {
			t.Fatalf("%x became %x", packet, inner)
		}
	})
}
