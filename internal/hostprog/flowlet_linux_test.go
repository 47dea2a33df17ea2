package hostprog

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/kernel/kerneltest"
	"weft/policy"
	"weft/topology"
)

// flowletRun compares flowlets with those of flowcell.Cutter, packet by packet. The time is the
// program's own: what it has written down for the flow.
type flowletRun struct {
	*drawing
	unit   flowcell.Unit
	flows  *ebpf.Map
	known  map[byte]*flowletFlow // by port
	begun  int
	counts []int // flowlets by path
}

type flowletFlow struct {
	cutter flowcell.Cutter
	at     time.Duration
	tick   uint32
	path   int
}

func newFlowletRun(t *testing.T, name string, o policy.Options) *flowletRun {
	t.Helper()
	return newFlowletRunOver(t, kerneltest.Topology(t, "fat-tree:k=4"), name, o)
}

func newFlowletRunOver(t *testing.T, top *topology.Topology, name string, o policy.Options, edit ...func(*SprayConfig)) *flowletRun {
	t.Helper()
	p, err := policy.New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	d := newDrawingOver(t, top, name, encap.CarrierIPIP, append(edit, func(c *SprayConfig) { c.Policy = p })...)
	return &flowletRun{drawing: d, unit: p.Unit, flows: d.known(t), known: make(map[byte]*flowletFlow), counts: make([]int, d.way.paths.Count())}
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

// pause has a flow send nothing for so long.
func (r *flowletRun) pause(t *testing.T, packet []byte, d time.Duration) {
	t.Helper()
	var v flowValue
	f := r.known[packet[23]]
	if f == nil {
		return
	}
	if err := r.flows.Lookup(flowOf(packet), &v); err != nil {
		t.Fatal(err)
	}
	v.Last -= uint32(d / tick)
	if err := r.flows.Put(flowOf(packet), &v); err != nil {
		t.Fatal(err)
	}
	f.tick = v.Last
}

// send runs a packet of data, and says whether a flowlet began by the Cutter.
func (r *flowletRun) send(t *testing.T, packet []byte) (begins bool, path int) {
	t.Helper()
	path = r.path(t, packet)
	var v flowValue
	if err := r.flows.Lookup(flowOf(packet), &v); err != nil {
		t.Fatal(err)
	}
	f := r.known[packet[23]]
	if f == nil {
		f = &flowletFlow{tick: v.Last}
		r.known[packet[23]] = f
	}
	f.at += time.Duration(v.Last-f.tick) * tick
	f.tick = v.Last
	_, begins = f.cutter.Next(r.unit, binary.BigEndian.Uint32(packet[24:]), len(packet)-40, 1, f.at)
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
		r.pause(t, p, pauses[rng.IntN(len(pauses))])
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
	if st.Flows != 3 || r.begun < 500 || again < 500 || gap != policy.MinFlowletGap && within < 500 {
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
		for n := 0; n < 60; n++ {
			seq += 100
			sent := time.Now()
			r.send(t, r.data(80, seq, 100, 0x18))
			p := r.data(80, seq+100, 0, c.flags)
			r.pause(t, p, c.pause)
			if path := r.path(t, p); !c.keeps || time.Since(sent) < flowcell.LeastTimeout {
				used[path] = true
			} else { // the machine stood still between the two
				n--
			}
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
