package workload

import (
	"math"
	"reflect"
	"testing"
	"time"

	"weft/internal/timerq"
	"weft/topology"
)

// play runs a Source as a simulator would in which a flow takes took(f), and
// returns flows in the order in which they begin.
func play(t *testing.T, s Source, most int, took func(Flow) time.Duration) []Flow {
	t.Helper()
	var begun []Flow
	var ends timerq.Queue[Flow]
	now := time.Duration(0)
	begin := func(f Flow) {
		if f.Start < now || f.Src == f.Dst {
			t.Fatalf("at %v flow %+v begins", now, f)
		}
		now = f.Start
		begun = append(begun, f)
		ends.Add(f.Start+took(f), f)
	}
	next, ok := s.Next()
	for len(begun) < most && (ok || ends.Len() > 0) {
		if ok && next.Start <= ends.Next() {
			begin(next)
			next, ok = s.Next()
			continue
		}
		now = ends.Next()
		s.Done(ends.Pop(), now, begin)
	}
	return begun
}

func millisecond(Flow) time.Duration { return time.Millisecond }

const rated = "fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000"

func TestPoisson_hasTheLoadAskedFor(t *testing.T) {
	top := parse(t, rated)
	to, _ := Uniform(top, OtherPod)
	for _, name := range []string{"fb_webserver_intracluster", "enterprise_conga"} {
		sizes, _ := LoadCDF(name)
		sizes = sizes.Truncate(1_000_000) // the tail's variance would hide a wrong rate
		const n, load = 400_000, 0.6
		p, err := NewPoisson(PoissonConfig{Senders: Hosts(top), To: to, Sizes: sizes, Flows: n,
			PerSecond: FlowsPerSecond(load, FabricMbit(top), sizes), From: time.Second, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		sent, last, gaps2, count := 0.0, time.Second, 0.0, make([]int, 16)
		for {
			f, ok := p.Next()
			if !ok {
				break
			}
			gap := (f.Start - last).Seconds()
			if gap < 0 || samePod(top, f.Src, f.Dst) {
				t.Fatalf("%+v after %v", f, last)
			}
			last, gaps2, sent = f.Start, gaps2+gap*gap, sent+float64(f.Bytes)
			count[f.Src]++
		}
		took := (last - time.Second).Seconds()
		if got := sent * 8 / took / 16e9; math.Abs(got/load-1) > 0.01 {
			t.Errorf("%s: load %.4f, want %.4f", name, got, load)
		}
		// Of exponential gaps the mean square is twice the square of the mean.
		if mean := took / n; math.Abs(gaps2/n/(2*mean*mean)-1) > 0.02 {
			t.Errorf("%s: gaps are not exponential: mean square %.3g of %.3g", name, gaps2/n, 2*mean*mean)
		}
		for h, c := range count {
			if math.Abs(float64(c)*16/n-1) > 0.02 {
				t.Errorf("%s: host %d begins %d flows of %d", name, h, c, n)
			}
		}
	}
}

func TestSources_areInOrderAndBySeed(t *testing.T) {
	top := parse(t, rated)
	sizes, _ := LoadCDF("websearch_dctcp")
	all := func(seed uint64) Source {
		to, _ := Uniform(top, OtherRack)
		po, err := NewPoisson(PoissonConfig{Senders: Hosts(top), To: to, Sizes: sizes, PerSecond: 1e5, Until: 50 * time.Millisecond, Class: 1, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		pe, err := NewPeriodic(PeriodicConfig{Senders: Hosts(top), To: to, Sizes: Fixed(50_000), Every: 5 * time.Millisecond, Until: 40 * time.Millisecond, Class: 2, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		in, err := NewIncast(IncastConfig{Hosts: Hosts(top), Servers: 5, Bytes: 1003, Jobs: 30, From: time.Millisecond, Until: 20 * time.Millisecond, Class: 3, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		turns, _ := InTurn(top, seed)
		cl, err := NewClosed(ClosedConfig{Senders: Hosts(top), To: turns, Sizes: sizes, AtOnce: 2, Spread: time.Millisecond, Class: 4, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return Merge(Merge(po, pe), in, cl)
	}
	a, b, c := play(t, all(1), 1e6, millisecond), play(t, all(1), 1e6, millisecond), play(t, all(2), 1e6, millisecond)
	if !reflect.DeepEqual(a, b) || reflect.DeepEqual(a, c) {
		t.Error("flows do not follow the seed")
	}
	count := map[uint8]int{}
	for _, f := range a {
		count[f.Class]++
	}
	if count[1] < 4500 || count[1] > 5500 || count[2] != 16*8 || count[3] != 150 || count[4] != 16*15 {
		t.Errorf("flows by class: %v", count)
	}
}

func TestPeriodic_isEvenPerHost(t *testing.T) {
	top := parse(t, rated)
	p, _ := NewPeriodic(PeriodicConfig{Senders: Hosts(top), To: To(mustStride(t, top, 8)), Sizes: Fixed(1), Every: time.Millisecond, From: time.Second, Until: 2 * time.Second})
	last := map[topology.NodeID]time.Duration{}
	for _, f := range play(t, p, 1e6, millisecond) {
		if l, ok := last[f.Src]; ok && f.Start-l != time.Millisecond || !ok && (f.Start < time.Second || f.Start >= time.Second+time.Millisecond) {
			t.Fatalf("host %d begins at %v after %v", f.Src, f.Start, l)
		}
		if f.Dst != (f.Src+8)%16 {
			t.Fatalf("%+v", f)
		}
		last[f.Src] = f.Start
	}
	if len(last) != 16 {
		t.Errorf("%d hosts send", len(last))
	}
}

func mustStride(t *testing.T, top *topology.Topology, by int) []topology.NodeID {
	to, err := Stride(top, by)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestClosed_keepsSoManyUnderWay(t *testing.T) {
	top := parse(t, rated)
	turns, _ := InTurn(top, 1)
	s, err := NewClosed(ClosedConfig{Senders: Hosts(top), To: turns, Sizes: Fixed(100), AtOnce: 3})
	if err != nil {
		t.Fatal(err)
	}
	type pair struct{ a, b topology.NodeID }
	seen, at := map[pair]bool{}, map[time.Duration]int{}
	for _, f := range play(t, s, 1e6, millisecond) {
		if seen[pair{f.Src, f.Dst}] {
			t.Fatalf("%d sends to %d twice", f.Src, f.Dst)
		}
		seen[pair{f.Src, f.Dst}] = true
		at[f.Start]++
	}
	if len(seen) != 16*15 || len(at) != 5 {
		t.Errorf("%d pairs, %d rounds", len(seen), len(at))
	}
	for begin, n := range at {
		if n != 48 {
			t.Errorf("at %v %d flows begin", begin, n)
		}
	}

	bulk, _ := NewClosed(ClosedConfig{Senders: Hosts(top), To: To(mustStride(t, top, 4)), Rounds: 1})
	if flows := play(t, bulk, 1e6, millisecond); len(flows) != 16 || flows[3].Bytes != 0 {
		t.Errorf("endless flows, one each: %+v", flows)
	}
	rounds, _ := NewClosed(ClosedConfig{Senders: Hosts(top)[:2], To: To(mustStride(t, top, 4)), Sizes: Fixed(1), AtOnce: 2, Rounds: 7})
	if flows := play(t, rounds, 1e6, millisecond); len(flows) != 2*2*7 {
		t.Errorf("%d flows, want 28", len(flows))
	}
}

func TestIncast_jobsComplete(t *testing.T) {
	top := parse(t, rated)
	const jobs, servers = 40, 6
	for _, together := range []int{0, 4} {
		s, err := NewIncast(IncastConfig{Hosts: Hosts(top), Servers: servers, Bytes: 1_000_000, Jobs: jobs, Together: together, Until: time.Second, Seed: 9})
		if err != nil {
			t.Fatal(err)
		}
		took := func(f Flow) time.Duration { return time.Duration(f.Src+1) * time.Millisecond }
		byJob := map[uint32][]Flow{}
		for _, f := range play(t, s, 1e6, took) {
			byJob[f.Job] = append(byJob[f.Job], f)
		}
		done, times := NewJobs(jobs, servers), map[time.Duration]map[topology.NodeID]bool{}
		for job, flows := range byJob {
			bytes, from, longest := int64(0), map[topology.NodeID]bool{}, time.Duration(0)
			for i, f := range flows {
				bytes += f.Bytes
				from[f.Src] = true
				longest = max(longest, took(f))
				if f.Start != flows[0].Start || f.Dst != flows[0].Dst {
					t.Fatalf("job %d is not one: %+v", job, flows)
				}
				if got, ok := done.Ended(f, took(f)); ok != (i == servers-1) || ok && got != longest {
					t.Fatalf("job %d, flow %d: %v, %v; the longest took %v", job, i, got, ok, longest)
				}
			}
			if bytes != 1_000_000 || len(from) != servers {
				t.Fatalf("job %d: %d bytes of %d servers", job, bytes, len(from))
			}
			if times[flows[0].Start] == nil {
				times[flows[0].Start] = map[topology.NodeID]bool{}
			}
			times[flows[0].Start][flows[0].Dst] = true
		}
		for at, clients := range times {
			if len(clients) != max(1, together) {
				t.Errorf("at %v there are %d clients", at, len(clients))
			}
		}
		if len(byJob) != jobs {
			t.Errorf("%d jobs", len(byJob))
		}
	}
}

func TestSources_refuseWhatIsWrong(t *testing.T) {
	top := parse(t, rated)
	to, _ := Uniform(top, Anywhere)
	good := PoissonConfig{Senders: Hosts(top), To: to, Sizes: Fixed(1), PerSecond: 1}
	for i, spoil := range []func(*PoissonConfig){
		func(c *PoissonConfig) {},
		func(c *PoissonConfig) { c.Senders = nil }, func(c *PoissonConfig) { c.To = nil },
		func(c *PoissonConfig) { c.Sizes = nil }, func(c *PoissonConfig) { c.PerSecond = 0 },
		func(c *PoissonConfig) { c.PerSecond = math.NaN() }, func(c *PoissonConfig) { c.From = -1 },
		func(c *PoissonConfig) { c.From, c.Until = 5, 4 }, func(c *PoissonConfig) { c.Flows = -1 },
	} {
		c := good
		spoil(&c)
		if _, err := NewPoisson(c); (err == nil) != (i == 0) {
			t.Errorf("Poisson %d: %v", i, err)
		}
	}
	for i, c := range []IncastConfig{
		{Hosts: Hosts(top), Servers: 15, Bytes: 15, Jobs: 1, Until: 1},
		{Hosts: Hosts(top), Servers: 16, Bytes: 16, Jobs: 1, Until: 1},
		{Hosts: Hosts(top), Servers: 5, Bytes: 4, Jobs: 1, Until: 1},
		{Hosts: Hosts(top), Servers: 5, Bytes: 5, Jobs: 0, Until: 1},
		{Hosts: Hosts(top), Servers: 5, Bytes: 5, Jobs: 1},
		{Hosts: Hosts(top), Servers: 5, Bytes: 5, Jobs: 1, Until: 1, Together: 17},
	} {
		if _, err := NewIncast(c); (err == nil) != (i == 0) {
			t.Errorf("Incast %d: %v", i, err)
		}
	}
	for i, c := range []ClosedConfig{
		{Senders: Hosts(top), To: to}, {To: to}, {Senders: Hosts(top)},
		{Senders: Hosts(top), To: to, AtOnce: -1}, {Senders: Hosts(top), To: to, AtOnce: 1 << 24},
		{Senders: Hosts(top), To: to, Rounds: -1}, {Senders: Hosts(top), To: to, Spread: -1},
	} {
		if _, err := NewClosed(c); (err == nil) != (i == 0) {
			t.Errorf("Closed %d: %v", i, err)
		}
	}
	for i, c := range []PeriodicConfig{
		{Senders: Hosts(top), To: to, Sizes: Fixed(1), Every: 1}, {To: to, Sizes: Fixed(1), Every: 1},
		{Senders: Hosts(top), Sizes: Fixed(1), Every: 1}, {Senders: Hosts(top), To: to, Every: 1},
		{Senders: Hosts(top), To: to, Sizes: Fixed(1)}, {Senders: Hosts(top), To: to, Sizes: Fixed(1), Every: 1, From: 2, Until: 1},
	} {
		if _, err := NewPeriodic(c); (err == nil) != (i == 0) {
			t.Errorf("Periodic %d: %v", i, err)
		}
	}
}
