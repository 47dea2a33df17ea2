package classifier

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// figure is how many flows Fig. 3.11 moves.
const figure = 3

func flow(n int) Flow {
	return Flow{netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), netip.AddrFrom4([4]byte{10, 1, 0, 2})}
}

func table(t testing.TB, ports int) *Table {
	t.Helper()
	x, err := New(ports, figure)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// oracle is Fig. 3.11 over a list of flows, as it is written.
type oracle struct {
	ports int
	flows []oracleFlow
}

type oracleFlow struct {
	flow  Flow
	port  int
	bytes uint64
}

func (o *oracle) loads() []uint64 {
	sums := make([]uint64, o.ports)
	for _, f := range o.flows {
		sums[f.port] += f.bytes
	}
	return sums
}

func (o *oracle) rearrange() (moves []Move) {
	for range 3 {
		sums := o.loads()
		most, least := slices.Index(sums, slices.Max(sums)), slices.Index(sums, slices.Min(sums))
		var fits []int
		for i, f := range o.flows {
			if f.port == most && f.bytes > 0 && f.bytes < sums[most]-sums[least] {
				fits = append(fits, i)
			}
		}
		if len(fits) == 0 {
			return moves
		}
		largest := slices.MaxFunc(fits, func(a, b int) int { return int(int64(o.flows[a].bytes) - int64(o.flows[b].bytes)) })
		o.flows[largest].port = least
		moves = append(moves, Move{o.flows[largest].flow, most, least})
	}
	return moves
}

// Rearrangements move what the figure's heuristic moves, and leave the ports no further
// apart than they were.
func TestRearrange_isTheFigure(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		ports := 1 + rng.IntN(6)
		x, o := table(t, ports), oracle{ports: ports}
		for i, bytes := range rng.Perm(rng.IntN(40)) { // no two alike
			f := oracleFlow{flow(i), rng.IntN(ports), uint64(bytes)}
			x.Observe(f.flow, f.port, f.bytes, 0)
			o.flows = append(o.flows, f)
		}
		apart := func() uint64 { s := o.loads(); return slices.Max(s) - slices.Min(s) }
		before := apart()
		got := x.Rearrange()
		want := o.rearrange()
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: moves %v, want %v", seed, got, want)
		}
		if len(got) > figure || apart() > before {
			t.Fatalf("seed %d: %d moves, ports %d apart, were %d", seed, len(got), apart(), before)
		}
		for p, want := range o.loads() {
			if x.Load(p) != want {
				t.Fatalf("seed %d: port %d carries %d, want %d", seed, p, x.Load(p), want)
			}
		}
	}
}

// Flows that are alike settle evenly, as many moves an interval as are allowed.
func TestRearrange_evensOutInAFewIntervals(t *testing.T) {
	for allowed, want := range map[int][]int{figure: {3, 3, 2, 0, 0}, 5: {5, 3, 0, 0, 0}, 1: {1, 1, 1, 1, 1}} {
		if got := evensOut(t, allowed); !slices.Equal(got, want) {
			t.Errorf("%d moves allowed, moves by interval: %v, want %v", allowed, got, want)
		}
	}
}

func evensOut(t *testing.T, allowed int) (moves []int) {
	x := table(t, 2)
	x.moves = allowed
	at := make(map[Flow]int)
	for i := range 16 {
		at[flow(i)] = 0
	}
	for round := range 5 {
		now := time.Duration(round) * time.Second
		for i := range 16 {
			x.Observe(flow(i), at[flow(i)], uint64(1000*(round+1)), now)
		}
		list := x.Rearrange()
		for _, m := range list {
			at[m.Flow] = m.To
		}
		moves = append(moves, len(list))
	}
	return moves
}

// The cost of a dead port is infinite (thesis §3.1.8): no flow moves to it, and none from
// it, as the program has given its flows to others.
func TestSetDead_nothingMovesThere(t *testing.T) {
	x := table(t, 3)
	x.SetDead(1, true)
	for i := range 12 {
		x.Observe(flow(i), i%2, 100, 0)
	}
	moves := x.Rearrange()
	if len(moves) != 3 {
		t.Errorf("moves %v, want 3 from port 0 to port 2", moves)
	}
	for _, m := range moves {
		if m.From != 0 || m.To != 2 {
			t.Errorf("%v moves from port %d to port %d, want 0 and 2", m.Flow, m.From, m.To)
		}
	}
	for i := range 3 {
		x.SetDead(i, true)
	}
	if moves := x.Rearrange(); moves != nil {
		t.Errorf("with all ports dead: %v", moves)
	}
}

// Observe is given totals: what comes again counts once, and a number that falls as nothing.
func TestObserve_totals(t *testing.T) {
	x := table(t, 2)
	for _, c := range []struct{ total, load uint64 }{{100, 100}, {100, 100}, {150, 150}, {120, 150}, {130, 160}} {
		if x.Observe(flow(0), 1, c.total, 0); x.Load(1) != c.load {
			t.Errorf("after a total of %d the port carries %d, want %d", c.total, x.Load(1), c.load)
		}
	}
	if x.Observe(flow(0), 2, 500, 0); x.Load(1) != 160 {
		t.Error("bytes by a port that there is not count")
	}
}

// Who sends nothing for long is forgotten, and told once.
func TestForget_idleFlows(t *testing.T) {
	x := table(t, 2)
	x.Observe(flow(0), 0, 10, 0)
	x.Observe(flow(1), 1, 10, 0)
	x.Observe(flow(1), 1, 20, 1)
	x.Observe(flow(0), 0, 10, maxIdle) // nothing new
	x.Rearrange()
	if idle := x.Forget(maxIdle, 9); !slices.Equal(idle, []Flow{flow(0)}) || x.Flows() != 1 {
		t.Errorf("idle: %v, %d known", idle, x.Flows())
	}
	if idle := x.Forget(maxIdle, 9); idle != nil {
		t.Errorf("idle again: %v", idle)
	}
	x.Observe(flow(1), 1, 30, maxIdle)
	if idle := x.Forget(5*maxIdle, 9); idle != nil {
		t.Errorf("%v is forgotten with what it has sent in this interval", idle)
	}
}

// No more are forgotten at a time than is asked for, the oldest first.
func TestForget_isBounded(t *testing.T) {
	x := table(t, 2)
	for i := range 5 {
		x.Observe(flow(i), 0, 0, 0)
	}
	for _, want := range [][]Flow{{flow(0), flow(1)}, {flow(2), flow(3)}, {flow(4)}, nil} {
		if got := x.Forget(maxIdle, 2); !slices.Equal(got, want) {
			t.Errorf("%v are forgotten, want %v", got, want)
		}
	}
}

// The table is bounded; a flow without room counts nothing until others are forgotten.
func TestTable_isBounded(t *testing.T) {
	x := table(t, 2)
	for i := range maxFlows {
		x.Observe(flow(i), 0, 0, 0)
	}
	extra := Flow{netip.AddrFrom4([4]byte{10, 9, 9, 9}), netip.AddrFrom4([4]byte{10, 1, 0, 2})}
	if x.Observe(extra, 0, 7, 0); x.Flows() != maxFlows || x.Load(0) != 0 {
		t.Errorf("%d flows, want %d; load %d", x.Flows(), maxFlows, x.Load(0))
	}
	x.Rearrange()
	x.Forget(maxIdle, maxFlows)
	if x.Observe(extra, 0, 7, maxIdle); x.Flows() != 1 || x.Load(0) != 7 {
		t.Errorf("afterwards: %d flows, load %d", x.Flows(), x.Load(0))
	}
}

// Whatever comes, sums of ports are those of their flows, and both lists are the same.
func TestTable_sumsHold(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		x := table(t, 4)
		now := time.Duration(0)
		for range 2000 {
			now += time.Duration(rng.IntN(int(time.Second)))
			switch rng.IntN(10) {
			case 0:
				x.SetDead(rng.IntN(4), rng.IntN(2) == 0)
			case 1:
				x.Rearrange()
			case 2:
				x.Forget(now, 1+rng.IntN(3))
			default:
				x.Observe(flow(rng.IntN(50)), rng.IntN(6)-1, uint64(rng.IntN(150000)), now)
			}
			want := make([]uint64, 4)
			for _, e := range x.order {
				want[e.port] += e.bytes
				if x.flows[e.flow] != e {
					t.Fatalf("seed %d: %v is not the one in the map", seed, e.flow)
				}
			}
			if len(x.order) != len(x.flows) {
				t.Fatalf("seed %d: %d flows in order, %d in the map", seed, len(x.order), len(x.flows))
			}
			for p, sum := range want {
				if x.ports[p].now != sum {
					t.Fatalf("seed %d: port %d has %d bytes, its flows %d", seed, p, x.ports[p].now, sum)
				}
			}
		}
	}
}

func TestNew_refuses(t *testing.T) {
	for _, ports := range []int{0, -1, MaxPorts + 1} {
		if _, err := New(ports, figure); err == nil {
			t.Errorf("%d ports: no error", ports)
		}
	}
	if _, err := New(2, 0); err == nil {
		t.Error("no moves: no error")
	}
}
