package thesis

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"weft/bench/papers"
	"weft/bench/sim/aqm"
	"weft/topology"
)

// Times of a bump have the percentiles and the mean of Table 5.2.
func TestBumpTakes_isTable52(t *testing.T) {
	for p, us := range map[float64]float64{.95: 42, .99: 83, .999: 169, 1: 208} {
		if got := bumpTakes(p); math.Abs(got.Seconds()*1e6-us) > .01 {
			t.Errorf("%v: %v, want %v µs", p, got, us)
		}
	}
	const n = 100_000
	sum := time.Duration(0)
	for i := range n {
		sum += bumpTakes((float64(i) + .5) / n)
	}
	if mean := sum / n; mean < 29_900 || mean > 30_100 {
		t.Errorf("mean %v, want 30 µs", mean)
	}
}

// evenly are packets at the rate of 1 Gbit/s.
func evenly(n int) (list []passing) {
	for i := range n {
		list = append(list, passing{time.Duration(i) * 12 * time.Microsecond, 1500, uint64(i % 2)})
	}
	return list
}

func TestForwarded_keepsOrderAndTakesItsTime(t *testing.T) {
	list := evenly(5000)
	for _, times := range []time.Duration{0, time.Millisecond} {
		behind := forwarded(list, times, 1)
		different := make(map[time.Duration]bool)
		for i, p := range behind {
			d := p.at - list[i].at
			if d < bumpTakes(0) || i > 0 && p.at < behind[i-1].at || p.bytes != 1500 || p.flow != list[i].flow {
				t.Fatalf("%v: packet %d takes %v: %+v behind %+v", times, i, d, p, behind[max(0, i-1)])
			}
			different[d] = true
		}
		if many := len(different); many == 1 || times > 0 && many > 3000 {
			t.Errorf("%v: %d different times", times, many)
		}
	}
	if list[1].at != 12*time.Microsecond {
		t.Error("the packets before the bump are changed")
	}
}

// A bump that takes always the same time has the lengths of the port behind it, and one that
// hears of a packet later has shorter ones meanwhile.
func TestLengths(t *testing.T) {
	var list []passing
	for i := range 50 { // 2 packets at once, of which one leaves in 12 µs
		list = append(list, passing{time.Duration(i/2) * 12 * time.Microsecond, 1500, uint64(i % 2)})
	}
	q := aqm.VirtualQueue{RateMbit: 1000}
	want := lengths(list, q)
	if want[49] != 3000+24*1500 {
		t.Errorf("%v bytes wait at the end", want[49])
	}
	const constant = 30 * time.Microsecond
	if got := lengths(later(later(list, 0, constant), 1, constant), q); !reflect.DeepEqual(got, want) {
		t.Errorf("behind a constant bump %v, want %v", got, want)
	}
	at := evenly(25)
	if got := lengthsAt(list, q, at); got[24] != want[49] {
		t.Errorf("at the last packet %v, want %v", got[24], want[49])
	}
	if got := lengthsAt(later(list, 1, 24*time.Microsecond), q, at); got[24] != want[49]-3000 {
		t.Errorf("two packets late: %v, want %v", got[24], want[49]-3000)
	}
	if got := lengthsAt(batched(list, 4), q, at); got[0] != 0 || got[1] != 6000 {
		t.Errorf("in batches of 4: %v", got[:2])
	}
}

func TestPercentWithin(t *testing.T) {
	values := apart([]float64{5, 1, 3, 0}, []float64{1, 5, 1, 1})
	if !slices.Equal(values, []float64{1, 2, 4, 4}) {
		t.Fatalf("%v", values)
	}
	for bound, want := range map[float64]float64{0: 0, 1: 25, 3: 50, 4: 100} {
		if got := percentWithin(values, bound); got != want {
			t.Errorf("%v: %v %%, want %v", bound, got, want)
		}
	}
}

// Jain's index is 1 of equal shares and 1/n where one has all; the swing is none of even
// goodputs.
func TestFairness(t *testing.T) {
	const per = 10
	for one, want := range map[bool]float64{false: 1, true: (1./2 + 1./3 + 1./4 + 1./5) / 4} {
		var windows [][fairFlows]float64
		for i := range fairFlows * per {
			n := i/per + 1
			var w [fairFlows]float64
			for f := range n {
				w[f] = 1000 / float64(n)
				if one {
					w[f] = 0
				}
			}
			if one {
				w[0] = 1000
			}
			windows = append(windows, w)
		}
		jain, swing := fairness(windows, per)
		if math.Abs(jain-want) > 1e-9 || swing > 1e-5 {
			t.Errorf("one has all %v: index %v, want %v, swing %v", one, jain, want, swing)
		}
	}
	var windows [][fairFlows]float64
	for i := range 2 * per { // two flows in turn have all
		w := [fairFlows]float64{}
		w[i%2] = 1000
		windows = append(windows, w)
	}
	if _, swing := fairness(windows, per); math.Abs(swing-100) > 1 {
		t.Errorf("swing %v %%, want 100", swing)
	}
}

// What tables of chapters 2 to 4 count by formulas is what the fabrics have.
func TestFormulas_areTheFabrics(t *testing.T) {
	for _, k := range []int{4, 8, 16, 24} {
		top := parse(t, fatTree(k))
		if hosts := top.NumHosts(); hosts != fatTreeHosts(k) || top.NumNodes()-hosts != fatTreeSwitches(k) || top.NumLinks()-hosts != k*k*k/2 {
			t.Errorf("k = %d: %d hosts, %d nodes, %d links", k, hosts, top.NumNodes(), top.NumLinks())
		}
	}
	d := designs{papers.Options{}}
	if got := d.hierarchy(4, 1); got != 8 { // four switches of 4 ports below two of 4
		t.Errorf("two layers of 4-port switches offer %v ports, want 8", got)
	}
	for switches, want := range map[int]int{1: 1, 47: 1, 48: 2, 320: 2, 2209: 2, 2210: 3} {
		if got := controlLayers(switches); got != want {
			t.Errorf("%d switches: %d layers, want %d", switches, got, want)
		}
	}
}

// Hosts that send by a rule send to each other once.
func TestShuffleOrder_isEachOtherOnce(t *testing.T) {
	top := parse(t, fatTree(4))
	for _, rule := range []string{"order", "next", "same"} {
		to, err := shuffleOrder(rule, top, 1)
		if err != nil {
			t.Fatal(err)
		}
		for h := range 16 {
			seen := make(map[int]bool)
			for range 15 {
				dst := int(to(topology.NodeID(h), nil))
				if dst < 0 || dst == h || seen[dst] {
					t.Fatalf("%s: host %d sends to %d, after %v", rule, h, dst, seen)
				}
				seen[dst] = true
			}
			if dst := to(topology.NodeID(h), nil); dst >= 0 {
				t.Errorf("%s: host %d sends to %d as the sixteenth", rule, h, dst)
			}
		}
	}
}
