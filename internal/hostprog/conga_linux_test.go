package hostprog

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/conga"
	"weft/encap"
	"weft/flowcell"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/paths"
	"weft/policy"
	"weft/topology"
)

// congaRun compares the program's CONGA with conga.Table, in a time of the test's own. Both know
// the same; where several paths are equally good, the program draws, and the table has to agree.
type congaRun struct {
	*flowletRun
	heed  *ebpf.Program
	table *conga.Table
	flow  map[byte]int // path of the flow's latest flowlet, by port
	turn  bool         // the latest packet of data had a report
}

const congaRate = 1e9

func newCongaRun(t *testing.T) *congaRun {
	t.Helper()
	return newCongaRunOver(t, kerneltest.Topology(t, "fat-tree:k=4"))
}

func newCongaRunOver(t *testing.T, top *topology.Topology) *congaRun {
	t.Helper()
	c := conga.Config{RateBits: congaRate}
	r := &congaRun{flowletRun: newFlowletRunOver(t, top, "conga", policy.Options{}, func(s *SprayConfig) { s.Conga = c }), flow: make(map[byte]int)}
	if len(r.spray.twins) != 1 {
		t.Fatalf("%d programs heed marks", len(r.spray.twins))
	}
	r.heed = r.spray.twins[0].at.Prog
	var err error
	if r.table, err = conga.New(c); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *congaRun) tag(path int) uint8 { return paths.Tag(r.way.paths, path) }

// leaves runs a packet, and returns its path and its mark; 0: none.
func (r *congaRun) leaves(t *testing.T, packet []byte) (path int, id uint16) {
	t.Helper()
	run := ebpf.RunOptions{Data: frameOf(packet), DataOut: make([]byte, 2048)}
	if _, err := r.spray.at.Prog.Run(&run); err != nil {
		t.Fatal(err)
	}
	left := run.DataOut[kernel.EthernetHeader:]
	to, inner := netip.AddrFrom4([4]byte(left[16:])), left[20:]
	path = -1
	for _, n := range r.way.visits {
		if r.way.paths.Addr(n) == to {
			path = n
		}
	}
	if path < 0 || kerneltest.OnesSum(left[:20]) != 0xffff || kerneltest.OnesSum(inner[:20]) != 0xffff {
		t.Fatalf("left as\n%s", dump(left))
	}
	if inner[1]>>2 == conga.MarkDSCP {
		id = binary.BigEndian.Uint16(inner[4:])
	}
	return path, id
}

// best reports whether the table holds a path for one of the least congested. It stays with a
// flow's last path only if that is one.
func (r *congaRun) best(path int) bool {
	return r.table.Choose(1, r.way.paths.Live, r.tag, path, r.now) == path
}

// arrives runs a packet with a mark from the other host through the program at ingress, and returns its
// header behind that.
func (r *congaRun) arrives(t *testing.T, port byte, ack uint32, m conga.Mark) []byte {
	t.Helper()
	return r.heeds(t, port, ack, conga.MarkDSCP<<2|1, m.Put())
}

// heeds is arrives for any TOS and ID.
func (r *congaRun) heeds(t *testing.T, port byte, ack uint32, tos byte, id uint16) []byte {
	t.Helper()
	p := r.data(port, 1, 100, 0x10)
	copy(p[12:], append(append([]byte(nil), p[16:20]...), p[12:16]...))
	copy(p[20:], append(append([]byte(nil), p[22:24]...), p[20:22]...))
	binary.BigEndian.PutUint32(p[28:], ack)
	p[1] = tos
	binary.BigEndian.PutUint16(p[4:], id)
	binary.BigEndian.PutUint16(p[10:], 0)
	binary.BigEndian.PutUint16(p[10:], ^kerneltest.OnesSum(p[:20]))
	run := ebpf.RunOptions{Data: frameOf(p), DataOut: make([]byte, 2048)}
	verdict, err := r.heed.Run(&run)
	if err != nil || int32(verdict) != -1 {
		t.Fatalf("verdict %d, %v", int32(verdict), err)
	}
	return run.DataOut[kernel.EthernetHeader:]
}

// Decision for decision the program does what conga.Table does: which path is the best at each
// flowlet, by what was sent and by reports of any age; that a flow stays where it is as well off;
// what marks say, and in what turn reports go back.
func TestSpray_congaAsTheTable(t *testing.T) {
	r := newCongaRun(t)
	const seed = 17
	rng := rand.New(rand.NewPCG(seed, 0))
	var seq [4]uint32
	chosen, moved, reports, forward := make(map[int]int), 0, 0, 0
	for i := range 8000 {
		port := byte(rng.IntN(len(seq)))
		switch rng.IntN(4) {
		case 0: // the other host says something
			if seq[port] == 0 {
				continue
			}
			m := conga.Mark{Feedback: rng.IntN(2) == 0, Tag: uint8(rng.IntN(4)), Metric: uint8(rng.IntN(8))}
			r.arrives(t, port, seq[port], m)
			if m.Feedback {
				r.table.Feedback(1, m.Tag, m.Metric, r.now)
			} else {
				r.table.Received(1, m.Tag, m.Metric, r.now)
			}
		case 1: // an acknowledgement leaves
			if seq[port] == 0 {
				continue
			}
			_, id := r.leaves(t, r.data(port, seq[port], 0, 0x10))
			tag, metric, ok := r.table.NextFeedback(1, r.now)
			want := uint16(0)
			if ok {
				want = conga.Mark{Feedback: true, Tag: tag, Metric: metric}.Put()
			}
			if id != want {
				t.Fatalf("seed %d, packet %d: an acknowledgement says %+v, want %+v", seed, i, conga.ParseMark(id), conga.ParseMark(want))
			}
		default:
			last, known := r.flow[port]
			if !known {
				last, seq[port] = -1, 1
			}
			payload := 100 + rng.IntN(1000)
			packet := r.data(port, seq[port], payload, 0x18)
			seq[port] += uint32(payload)
			before := r.stats(t).Flowcells
			path, id := r.leaves(t, packet)
			if r.stats(t).Flowcells != before {
				if last >= 0 && r.best(last) && path != last || !r.best(path) {
					t.Fatalf("seed %d, packet %d: a flowlet by path %d behind %d; %+v", seed, i, path, last, r.table.Destinations(r.now))
				}
				if last >= 0 && path != last {
					moved++
				}
				chosen[path]++
			} else if path != last {
				t.Fatalf("seed %d, packet %d: path %d within a flowlet by %d", seed, i, path, last)
			}
			r.flow[port] = path
			want := conga.Mark{Tag: r.tag(path)}.Put()
			if r.turn = !r.turn; r.turn {
				tag, metric, ok := r.table.NextFeedback(1, r.now)
				if ok {
					want = conga.Mark{Feedback: true, Tag: tag, Metric: metric}.Put()
				}
				r.turn = ok
			}
			if id != want {
				t.Fatalf("seed %d, packet %d: data says %+v, want %+v", seed, i, conga.ParseMark(id), conga.ParseMark(want))
			}
			if id>>15 == 1 {
				reports++
			} else {
				forward++
			}
			r.table.Sent(r.tag(path), len(packet)+encap.CarrierIPIP.Overhead(), r.now)
		}
		r.pass(t, []time.Duration{0, 5 * time.Microsecond, 40 * time.Microsecond, r.unit.Gap + 2*tick, 3 * time.Millisecond}[rng.IntN(5)])
	}
	if len(chosen) != 4 || moved < 100 || reports < 100 || forward < 100 {
		t.Errorf("flowlets by path %v, %d moved; %d reports, %d forward", chosen, moved, reports, forward)
	}
}

// What a timeout sends again leaves the path that it took before, as in the dataplane.
func TestSpray_congaLeavesAPathAfterATimeout(t *testing.T) {
	r := newCongaRun(t)
	p := r.data(80, 1, 100, 0x18)
	last, _ := r.leaves(t, p)
	for i := range 20 {
		for tag := range uint8(4) {
			m := conga.Mark{Feedback: true, Tag: tag, Metric: 7}
			if r.tag(last) == tag {
				m.Metric = 0
			}
			r.arrives(t, 80, 101, m)
		}
		r.pass(t, flowcell.LeastTimeout+2*tick)
		path, _ := r.leaves(t, p)
		if path == last {
			t.Fatalf("timeout %d goes by path %d again", i, path)
		}
		last = path
	}
}

// Where there are more paths than tags, what a timeout sends again leaves all paths of its tag, as
// these have their first hop in common; it takes the best of the others. Where all live paths have
// one tag, it leaves the path that it took, whatever that weighs, if there is another.
func TestSpray_congaLeavesATagAfterATimeout(t *testing.T) {
	oneTag := []string{"e0.0-a0.6", "e0.0-a0.7", "e0.0-a0.8", "e0.0-a0.9"}
	onePath := append(slices.Clone(oneTag), "a0.5-c1.2", "a0.5-c1.3", "a0.5-c1.4", "a0.5-c1.5")
	for name, c := range map[string]struct {
		rates       string
		down        []string
		paths, tags int
	}{
		"five tags":        {"", nil, 25, 5},
		"one tag":          {"", oneTag, 5, 1},
		"one tag, weights": {",fabric-rate=40,core-rate=40,a0.5-c1.2=10", oneTag, 5, 1},
		"one path":         {"", onePath, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			top := kerneltest.Topology(t, "fat-tree:k=10,hosts=1"+c.rates)
			for _, name := range c.down {
				l, err := top.LinkByName(name)
				if err != nil {
					t.Fatal(err)
				}
				top = top.Without(l.ID)
			}
			const seed = 23
			rng := rand.New(rand.NewPCG(seed, 0))
			r := newCongaRunOver(t, top)
			if set := r.way.paths; len(set.Live) != c.paths || (set.Weights != nil) != (c.rates != "") {
				t.Fatalf("%d live paths with weights %v", len(set.Live), set.Weights)
			}
			p := r.data(80, 1, 100, 0x18)
			last, _ := r.leaves(t, p)
			r.table.Choose(1, r.way.paths.Live, r.tag, last, r.now) // now it knows the rack
			taken := make(map[int]bool)
			for i := range 300 {
				r.pass(t, flowcell.LeastTimeout+2*tick)
				for tag := range uint8(c.tags) {
					m := conga.Mark{Feedback: true, Tag: tag, Metric: uint8(rng.IntN(3))}
					if tag == r.tag(last) {
						m.Metric = 0
					}
					r.arrives(t, 80, 101, m)
					r.table.Feedback(1, m.Tag, m.Metric, r.now)
				}
				var allowed []int
				for _, n := range r.way.paths.Live {
					if r.tag(n) != r.tag(last) || c.tags == 1 && n != last {
						allowed = append(allowed, n)
					}
				}
				if allowed == nil {
					allowed = []int{last}
				}
				path, _ := r.leaves(t, p)
				if !slices.Contains(allowed, path) || r.table.Choose(1, allowed, r.tag, path, r.now) != path {
					t.Fatalf("seed %d, timeout %d: from path %d to %d, with tags %d and %d; %+v", seed, i, last, path, r.tag(last), r.tag(path), r.table.Destinations(r.now))
				}
				last, taken[path] = path, true
			}
			if len(taken) != c.paths {
				t.Errorf("paths taken: %v", taken)
			}
		})
	}
}

// §3.5: flowlets leave a path that is reported as congested, and come back when the report is old.
// Its null, letflow, does not leave.
func TestSpray_congaLeavesACongestedPath(t *testing.T) {
	r := newCongaRun(t)
	p := r.data(80, 1, 100, 0x18)
	for bad := range uint8(4) {
		r.pass(t, time.Minute)
		r.leaves(t, p)
		r.arrives(t, 80, 101, conga.Mark{Feedback: true, Tag: bad, Metric: 7})
		for range 20 {
			r.pass(t, r.unit.Gap+2*tick)
			if path, _ := r.leaves(t, p); r.tag(path) == bad {
				t.Fatalf("a flowlet by path %d, which is congested", path)
			}
		}
	}
}
