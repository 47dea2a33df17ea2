package hostprog

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/policy"
	"weft/topology"
)

// flowletRun compares flowlets with those of flowcell.Cutter, packet by packet, in a time of the
// test's own.
type flowletRun struct {
	*drawing
	clock  *ebpf.Map
	now    time.Duration
	unit   flowcell.Unit
	known  map[byte]*flowletFlow // by port
	begun  int
	counts []int // flowlets by path
}

type flowletFlow struct {
	cutter flowcell.Cutter
	path   int
}

func newFlowletRun(t *testing.T, name string, o policy.Options) *flowletRun {
	t.Helper()
	return newFlowletRunOver(t, kerneltest.Topology(t, "fat-tree:k=4"), name, o)
}

func newFlowletRunOver(t *testing.T, top *topology.Topology, name string, o policy.Options, edit ...func(*SprayConfig)) *flowletRun {
	t.Helper()
	simulated = true
	defer func() { simulated = false }()
	p, err := policy.New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	d := newDrawingOver(t, top, name, encap.CarrierIPIP, append(edit, func(c *SprayConfig) { c.Policy = p })...)
	r := &flowletRun{drawing: d, unit: p.Unit, known: make(map[byte]*flowletFlow), counts: make([]int, d.way.paths.Count())}
	if r.clock, err = kernel.ProgramMap(r.spray.at.Prog, "clock"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.clock.Close() })
	r.pass(t, time.Second)
	return r
}

// pass has time pass.
func (r *flowletRun) pass(t *testing.T, d time.Duration) {
	t.Helper()
	r.now += d
	if err := r.clock.Put(uint32(0), uint64(r.now)); err != nil {
		t.Fatal(err)
	}
}

// data is a segment of a flow, with flags.
func (r *flowletRun) data(port byte, seq uint32, payload int, flags byte) []byte {
	p := append(r.numberedSegment(uint16(seq))[:40], make([]byte, payload)...)
	p[2], p[3], p[23], p[33] = byte(len(p)>>8), byte(len(p)), port, flags
	binary.BigEndian.PutUint32(p[24:], seq)
	binary.BigEndian.PutUint16(p[10:], 0)
	binary.BigEndian.PutUint16(p[10:], ^kerneltest.OnesSum(p[:20]))
	return p
}

// send runs a packet of data, and says whether a flowlet began by the Cutter.
func (r *flowletRun) send(t *testing.T, packet []byte) (begins bool, path int) {
	t.Helper()
	path = r.path(t, packet)
	f := r.known[packet[23]]
	if f == nil {
		f = new(flowletFlow)
		r.known[packet[23]] = f
	}
	_, begins = f.cutter.Next(r.unit, binary.BigEndian.Uint32(packet[24:]), len(packet)-40, 1, r.now/tick*tick)
	if begins {
		r.begun++
		r.counts[path]++
		f.path = path
	}
	if path != f.path {
		t.Fatalf("path %d within a flowlet by path %d", path, f.path)
	}
	return begins, path
}

// Flowlets begin where those of the Cutter begin, and at no other packet, and keep to one path
// meanwhile; data that is sent again counts as there.
func TestSpray_flowletsAsTheCutter(t *testing.T) {
	for _, gap := range []time.Duration{0, policy.MinFlowletGap, 20 * time.Millisecond} {
		t.Run(gap.String(), func(t *testing.T) { flowletsAsTheCutter(t, gap) })
	}
}

func flowletsAsTheCutter(t *testing.T, gap time.Duration) {
	r := newFlowletRun(t, "letflow", policy.Options{FlowletGap: gap})
	const seed = 31
	rng := rand.New(rand.NewPCG(seed, uint64(gap)))
	pauses := []time.Duration{0, 0, 0, r.unit.Gap / 2, r.unit.Gap, r.unit.Gap + tick, flowcell.LeastTimeout, flowcell.LeastTimeout + tick, time.Minute}
	end := [3]uint32{5, 1 << 31, 1<<32 - 9000}
	within, again := 0, 0
	for i := range 6000 {
		flow := rng.IntN(len(end))
		payload, seq := 1+rng.IntN(1200), end[flow]
		if rng.IntN(3) == 0 && i > 50 {
			seq -= uint32(rng.IntN(3000))
		}
		if e := seq + uint32(payload); int32(e-end[flow]) > 0 {
			end[flow] = e
		} else {
			again++
		}
		p := r.data(byte(80+flow), seq, payload, 0x10)
		r.pass(t, pauses[rng.IntN(len(pauses))])
		before := r.begun
		r.send(t, p)
		if st := r.stats(t); st.Flowcells != uint64(r.begun) {
			t.Fatalf("gap %v, seed %d, packet %d: %d flowlets, want %d", gap, seed, i, st.Flowcells, r.begun)
		}
		if r.begun == before {
			within++
		}
	}
	st := r.stats(t)
	if st.Flows != 3 || r.begun < 500 || again < 500 || within < 500 {
		t.Errorf("gap %v: %+v; %d flowlets, %d packets within, %d sent again", gap, st, r.begun, within, again)
	}
	for path, n := range r.counts {
		if share := float64(n) / float64(r.begun); share < .15 || share > .35 {
			t.Errorf("gap %v: %d of %d flowlets by path %d of %d", gap, n, r.begun, path, len(r.counts))
		}
	}
}

// What begins or ends a connection goes with the data just before; without such data, and for
// acknowledgements, any path does.
func TestSpray_flowletsWithoutPayload(t *testing.T) {
	r := newFlowletRun(t, "letflow", policy.Options{FlowletGap: time.Second})
	seq := uint32(1)
	_, by := r.send(t, r.data(80, seq, 100, 0x18))
	for name, c := range map[string]struct {
		flags byte
		pause time.Duration
		keeps bool
	}{
		"FIN": {0x11, 0, true}, "RST": {0x04, 0, true}, "late FIN": {0x11, 2 * flowcell.LeastTimeout, false}, "ACK": {0x10, 0, false},
	} {
		used := make(map[int]bool)
		for range 60 {
			seq += 100
			r.send(t, r.data(80, seq, 100, 0x18))
			p := r.data(80, seq+100, 0, c.flags)
			r.pass(t, c.pause)
			used[r.path(t, p)] = true
		}
		if keeps := len(used) == 1 && used[by]; keeps != c.keeps || !keeps && len(used) != 4 {
			t.Errorf("60 times %s: paths %v, data went by %d", name, used, by)
		}
	}
	if st := r.stats(t); st.Flowcells != 1 || st.Flows != 1 {
		t.Errorf("%+v; all data was one flowlet", st)
	}
}

// A path that dies ends the flowlets under way, and takes none until it is back.
func TestSpray_flowletsLeaveADeadPath(t *testing.T) {
	r := newFlowletRun(t, "letflow", policy.Options{FlowletGap: 10 * time.Second})
	for port := range byte(20) {
		p := r.data(port, 1, 100, 0x18)
		by := r.path(t, p)
		less := r.top.WithoutNode(r.way.paths.Bounce(by))
		if err := r.spray.SetTopology(less); err != nil {
			t.Fatal(err)
		}
		r.oracle.table = mustTable(t, less, r.src.ID, mustPolicy(t, "letflow"))
		for range 3 {
			if again := r.path(t, p); again == by {
				t.Fatalf("path %d, dead, is still taken", by)
			}
		}
		if err := r.spray.SetTopology(r.top); err != nil {
			t.Fatal(err)
		}
		r.oracle.table = mustTable(t, r.top, r.src.ID, mustPolicy(t, "letflow"))
	}
}
