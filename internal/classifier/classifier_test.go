package classifier

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

func flow(n int) Flow {
	return Flow{netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), netip.AddrFrom4([4]byte{10, 1, 0, 2})}
}

func table(t testing.TB, c Config) *Table {
	t.Helper()
	x, err := New(c)
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
		x, o := table(t, Config{Ports: ports}), oracle{ports: ports}
		x.Rearrange(0)
		for i, bytes := range rng.Perm(rng.IntN(40)) { // no two alike
			f := oracleFlow{flow(i), rng.IntN(ports), uint64(bytes)}
			x.Observe(f.flow, f.port, f.bytes, 0)
			o.flows = append(o.flows, f)
		}
		apart := func() uint64 { s := o.loads(); return slices.Max(s) - slices.Min(s) }
		before := apart()
		got, want := x.Rearrange(time.Second), o.rearrange()
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: moves %v, want %v", seed, got, want)
		}
		if len(got) > MaxMoves || apart() > before {
			t.Fatalf("seed %d: %d moves, ports %d apart, were %d", seed, len(got), apart(), before)
		}
		for p, want := range o.loads() {
			if x.Load(p) != want {
				t.Fatalf("seed %d: port %d carries %d, want %d", seed, p, x.Load(p), want)
			}
		}
	}
}

// Flows that are alike settle evenly, three moves an interval.
func TestRearrange_evensOutInAFewIntervals(t *testing.T) {
	x := table(t, Config{Ports: 2})
	at := make(map[Flow]int)
	for i := range 16 {
		at[flow(i)] = 0
	}
	now := time.Duration(0)
	x.Rearrange(now)
	var moves []int
	for range 5 {
		for i := range 16 {
			x.Observe(flow(i), at[flow(i)], 1000, now)
		}
		now += DefaultInterval
		list := x.Rearrange(now)
		for _, m := range list {
			at[m.Flow] = m.To
		}
		moves = append(moves, len(list))
	}
	if !slices.Equal(moves, []int{3, 3, 2, 0, 0}) {
		t.Errorf("moves by interval: %v, want 3, 3, 2 and no more", moves)
	}
}

func TestRearrange_waitsForTheInterval(t *testing.T) {
	x := table(t, Config{Ports: 2})
	x.Rearrange(5 * time.Second)
	for i := range 3 {
		x.Observe(flow(i), 0, 100, 5*time.Second)
	}
	if m := x.Rearrange(6*time.Second - 1); m != nil {
		t.Errorf("moved before the interval had passed: %v", m)
	}
	if m := x.Rearrange(6 * time.Second); len(m) == 0 {
		t.Error("nothing moved after the interval")
	}
}

// All packets of a flow go by one port, and new flows spread evenly (thesis §3.1.6).
func TestPacket_staysAndSpreads(t *testing.T) {
	x := table(t, Config{Ports: 4})
	first := make(map[Flow]int)
	count := make([]int, 4)
	for i := range 400 {
		f := flow(i % 40)
		p := x.Packet(f, 1500, time.Duration(i))
		if was, ok := first[f]; ok && was != p {
			t.Fatalf("packet %d: by port %d, was %d", i, p, was)
		} else if !ok {
			first[f] = p
			count[p]++
		}
	}
	if slices.Max(count) != 10 || slices.Min(count) != 10 {
		t.Errorf("flows by port: %v, want 10 each", count)
	}
}

// A new flow avoids what an elephant fills, in the next interval, too.
func TestPacket_avoidsTheLoadedPort(t *testing.T) {
	x := table(t, Config{Ports: 2})
	x.Rearrange(0)
	loaded := x.Packet(flow(0), 1e6, 0)
	for i := 1; i < 10; i++ {
		if p := x.Packet(flow(i), 100, 0); p == loaded {
			t.Fatalf("flow %d goes by the loaded port", i)
		}
	}
	x.Rearrange(time.Second)
	for i := 10; i < 20; i++ {
		if p := x.Packet(flow(i), 100, time.Second); p == loaded {
			t.Fatalf("flow %d goes by the loaded port in the next interval", i)
		}
	}
}

// The cost of a dead port is infinite (thesis §3.1.8): its flows go elsewhere, and no flow
// gets it until it lives again.
func TestSetDead_flowsGoElsewhere(t *testing.T) {
	x := table(t, Config{Ports: 3})
	x.Rearrange(0)
	for i := range 9 {
		x.Packet(flow(i), 100*(i+1), 0)
	}
	x.SetDead(1, true)
	for i := range 30 {
		if p := x.Packet(flow(i), 100, 0); p == 1 {
			t.Fatalf("flow %d goes by the dead port", i)
		}
	}
	for _, m := range x.Rearrange(time.Second) {
		if m.To == 1 {
			t.Errorf("%v moves to the dead port", m.Flow)
		}
	}
	if s := x.Stats(); s.Rescued != 3 {
		t.Errorf("%d flows rescued, want 3", s.Rescued)
	}
	x.SetDead(1, false)
	if p := x.Packet(flow(99), 100, time.Second); p != 1 {
		t.Errorf("a new flow goes by port %d, want the one that lives again and is empty", p)
	}
	for i := range 3 {
		x.SetDead(i, true)
	}
	if p := x.Packet(flow(99), 100, time.Second); p != 1 {
		t.Errorf("with all ports dead the flow went to port %d", p)
	}
}

// The table is bounded: the idlest flow goes, and is counted.
func TestTable_isBounded(t *testing.T) {
	x := table(t, Config{Ports: 2, Flows: 100})
	for i := range 1000 {
		x.Packet(flow(i), 1, time.Duration(i))
		x.Packet(flow(0), 1, time.Duration(i)) // never the idlest
	}
	s := x.Stats()
	if s.Flows != 100 || s.Evicted != 900 || s.Assigned != 1000 {
		t.Errorf("stats %+v", s)
	}
	flows := x.ports[0].flows + x.ports[1].flows
	if flows != 100 {
		t.Errorf("ports have %d flows", flows)
	}
	x.Rearrange(0)
	x.Rearrange(time.Minute)
	if s := x.Stats(); s.Flows != 0 || s.Idle != 100 || x.ports[0].flows+x.ports[1].flows != 0 {
		t.Errorf("after a minute: %+v", s)
	}
}

// Whatever comes, sums of ports are those of their flows.
func TestTable_sumsHold(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		x := table(t, Config{Ports: 4, Flows: 1000, Interval: 10, Idle: 1000})
		now := time.Duration(0)
		for range 2000 {
			now += time.Duration(rng.IntN(3))
			switch rng.IntN(10) {
			case 0:
				x.SetDead(rng.IntN(4), rng.IntN(2) == 0)
			case 1:
				x.Rearrange(now)
			case 2:
				x.Observe(flow(rng.IntN(50)), rng.IntN(6)-1, uint64(rng.IntN(1500)), now)
			default:
				x.Packet(flow(rng.IntN(50)), rng.IntN(1500), now)
			}
			want := make([]uint64, 4)
			for e := x.order.Front(); e != nil; e = e.Next() {
				f := e.Value.(*entry)
				want[f.port] += f.bytes
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
	for _, c := range []Config{{}, {Ports: -1}, {Ports: MaxPorts + 1}, {Ports: 2, Flows: -1}, {Ports: 2, Interval: -1}, {Ports: 2, Idle: -1}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}
