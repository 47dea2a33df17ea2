package hostprog

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// drawing is a program that draws paths, run by the kernel's test runs.
type drawing struct {
	sprayed
	top  *topology.Topology
	rack netip.Prefix // of dst
	way  sprayWay     // there
}

// newDrawing attaches to a cable that leads nowhere.
func newDrawing(t *testing.T, policy string, c encap.Carrier, edit ...func(*SprayConfig)) *drawing {
	t.Helper()
	return newDrawingOver(t, kerneltest.Topology(t, "fat-tree:k=4"), policy, c, edit...)
}

// newDrawingOver is newDrawing in any fabric.
func newDrawingOver(t *testing.T, top *topology.Topology, policy string, c encap.Carrier, edit ...func(*SprayConfig)) *drawing {
	t.Helper()
	ns := kerneltest.Namespace(t, "drawn-"+policy)
	kerneltest.EthernetPair(t, ns, "p0", "p1")
	d := &drawing{top: top}
	hosts := kerneltest.Hosts(d.top)
	d.src, d.dst = hosts[0], hosts[len(hosts)-1]
	cfg := SprayConfig{Uplink: "p0", Addresses: []netip.Addr{d.src.Addr, d.top.EmbeddedAddr(d.src.ID)},
		Topology: d.top, Self: d.src.ID, Policy: mustPolicy(t, policy), Carrier: c}
	for _, e := range edit {
		e(&cfg)
	}
	err := kernel.InNamespace(ns, func() (err error) {
		d.spray, err = AttachSpray(cfg)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.spray.Close() })
	d.oracle = sprayOracle{own: cfg.Addresses, table: mustTableBy(t, d.top, d.src.ID, cfg.Policy, c), mtu: 65536}
	if len(cfg.Cut) > 0 {
		d.oracle.cut = newCutOracle(cfg.Policy.Unit, cfg.Cut...)
		d.onTime(t)
	}
	d.rack = rackOf(d.dst.Addr)
	d.way = d.oracle.table[d.rack]
	return d
}

// path runs a packet and returns the number of the path that it took; all its
// bytes must be right for that.
func (d *drawing) path(t *testing.T, packet []byte) int {
	t.Helper()
	run := ebpf.RunOptions{Data: frameOf(packet), DataOut: make([]byte, 2048)}
	verdict, err := d.spray.at.Prog.Run(&run)
	if err != nil {
		t.Fatal(err)
	}
	inner, way, _ := d.oracle.prepare(packet, 1, run.DataOut[kernel.EthernetHeader:])
	step := way.stepOf(inner, run.DataOut[kernel.EthernetHeader:])
	if verdict == actShot || step < 0 {
		t.Fatalf("verdict %d:\n%sgot\n%swant, by some path,\n%s", int32(verdict), dump(packet), dump(run.DataOut[kernel.EthernetHeader:]), dump(way.wrap(inner, 0)))
	}
	if typ := binary.BigEndian.Uint16(run.DataOut[12:]); typ != map[encap.Carrier]uint16{encap.CarrierIPIP: 0x0800, encap.CarrierSRv6: 0x86dd}[way.carrier] {
		t.Fatalf("Ethernet type %#x by %v", typ, way.carrier)
	}
	return way.visits[step]
}

// segment is one of a flowcell of a flow that numbers itself.
func (d *drawing) segment(port, cell uint16, index uint8) []byte {
	p := d.numberedSegment(uint16(flowcell.MakeNumber(cell, index)))
	binary.BigEndian.PutUint16(p[20:], port)
	return p
}

// A flowcell's path is drawn when it begins and kept, whatever is chosen meanwhile;
// flowcells of a flow take all paths about alike.
func TestSpray_drawsWithEachFlowcell(t *testing.T) {
	for _, c := range []struct {
		policy  string
		carrier encap.Carrier
	}{{"rand", encap.CarrierIPIP}, {"luopan", encap.CarrierSRv6}} {
		t.Run(c.policy, func(t *testing.T) {
			d := newDrawing(t, c.policy, c.carrier)
			const cells = 2000
			counts := make([]int, d.way.paths.Count())
			for cell := range uint16(cells) {
				first := d.path(t, d.segment(1, cell, 0))
				for index := range uint8(3) {
					if p := d.path(t, d.segment(1, cell, index+1)); p != first {
						t.Fatalf("flowcell %d: path %d behind %d", cell, p, first)
					}
				}
				counts[first]++
			}
			for p, n := range counts {
				// A quarter each; six standard deviations are 116.
				if n < cells/4-116 || n > cells/4+116 {
					t.Errorf("%d of %d flowcells by path %d", n, cells, p)
				}
			}
			st := d.stats(t)
			var sum uint64
			for _, b := range st.Bounces {
				sum += b.Flowcells
				if i := slices.IndexFunc(d.way.visits, func(n int) bool { return d.way.paths.Addr(n) == b.Addr }); i >= 0 && b.Flowcells != uint64(counts[i]) {
					t.Errorf("%v: %d flowcells counted, want %d", b.Addr, b.Flowcells, counts[i])
				}
			}
			if st.Flows != 1 || st.Flowcells != cells || sum != cells || st.Chosen != 0 {
				t.Errorf("%+v; want %d flowcells of one flow", st, cells)
			}
		})
	}
}

// A flowcell under way by a path that dies goes on by a live one.
func TestSpray_drawnPathDies(t *testing.T) {
	d := newDrawing(t, "rand", encap.CarrierIPIP)
	for port := range uint16(40) {
		p := d.path(t, d.segment(port, 5, 0))
		dead := d.way.paths.Bounce(p)
		less := d.top.WithoutNode(dead)
		for _, top := range []*topology.Topology{less, d.top} {
			if err := d.spray.SetTopology(top); err != nil {
				t.Fatal(err)
			}
			d.oracle.table = mustTable(t, top, d.src.ID, mustPolicy(t, "rand"))
			if again := d.path(t, d.segment(port, 5, 1)); top == less && again == p {
				t.Fatalf("path %d, dead, is still taken", p)
			}
		}
	}
}

// The kernel's TCP is cut as ever, and each of its flowcells is drawn once.
func TestSpray_drawsWhatItCuts(t *testing.T) {
	d := newDrawing(t, "luopan", encap.CarrierSRv6, func(c *SprayConfig) { c.Cut = c.Addresses[:1] })
	const seed = 12
	rng := rand.New(rand.NewPCG(seed, 0))
	if err := d.spray.Choose(d.rack, 2, time.Hour); err != nil {
		t.Fatal(err)
	}
	// The oracle numbers, and path compares: only what begins with the choice may
	// take its path, all of a flowcell the same.
	last := make(map[uint16]int)
	for i := range 3000 {
		port := uint16(rng.IntN(3))
		p := d.numberedSegment(uint16(rng.Uint32()))
		binary.BigEndian.PutUint16(p[20:], port)
		p = append(p, make([]byte, rng.IntN(1200))...)
		p[2], p[3] = byte(len(p)>>8), byte(len(p))
		binary.BigEndian.PutUint16(p[10:], 0)
		binary.BigEndian.PutUint16(p[10:], ^kerneltest.OnesSum(p[:20]))
		_, before := d.oracle.cut.counts()
		path := d.path(t, p)
		_, cells := d.oracle.cut.counts()
		chosen := i/500%2 == 0
		switch {
		case cells > before && chosen && path != 2:
			t.Fatalf("seed %d, packet %d: a flowcell begins by path %d, chosen was 2", seed, i, path)
		case cells == before && path != last[port]:
			t.Fatalf("seed %d, packet %d: by path %d behind %d", seed, i, path, last[port])
		}
		last[port] = path
		if i%500 == 499 {
			valid := time.Duration(0)
			if !chosen {
				valid = time.Hour
			}
			if err := d.spray.Choose(d.rack, 2, valid); err != nil {
				t.Fatal(err)
			}
		}
	}
	st := d.stats(t)
	if flows, cells := d.oracle.cut.counts(); st.Flows != flows || st.Flowcells != cells || st.Chosen == 0 || st.Chosen >= cells {
		t.Errorf("%+v; want %d flowcells of %d flows, some of them chosen", st, cells, flows)
	}
	// The end of a connection goes where its last data went, if that was just now.
	data := d.numberedSegment(9)
	binary.BigEndian.PutUint16(data[20:], 1)
	fin := bytes.Clone(data[:40])
	fin[3], fin[33] = 40, 0x11
	binary.BigEndian.PutUint16(fin[10:], 0)
	binary.BigEndian.PutUint16(fin[10:], ^kerneltest.OnesSum(fin[:20]))
	for quick, tries := 0, 0; quick < 20; tries++ {
		if tries == 1000 {
			t.Fatal("this machine takes longer from data to a FIN than the program waits")
		}
		began := time.Now()
		by := d.path(t, bytes.Clone(data))
		p := d.path(t, bytes.Clone(fin))
		if time.Since(began) > flowcell.LeastTimeout {
			continue // the program may have let go of the path
		}
		if quick++; p != by {
			t.Fatalf("FIN by path %d, data by %d", p, by)
		}
	}
}
