package fct

import (
	"math"
	"strings"
	"testing"
	"time"
)

// burst is how many bytes a lab's link passes at once when it has been idle (lab.Config
// BurstBytes). Links add no other delay, so a link is a fluid and not a store.
const burst = 3200

// ideal is how long a flow takes at least that is alone in the fabric: base, and the bytes beyond
// burst at the rate of the hosts' links, as if there were neither slow start nor TCP options.
func ideal(bytes int64, mbit float64, base time.Duration) time.Duration {
	wire := bytes + (bytes+mss-1)/mss*headers
	micros := float64(max(0, wire-burst)) * 8 / mbit
	return base + time.Duration(math.Round(micros*float64(time.Microsecond)))
}

// Between measured sizes it is a straight line, beyond them the link's rate; a slower link
// stretches what is beyond one byte's time; that is the distance's; and a size that a larger one
// undercuts is not believed, nor a distance that a longer one undercuts.
func TestAlone_byHand(t *testing.T) {
	const ms = time.Millisecond
	a := newAlone("base", 8*1448/1514., []point{{1, 2 * ms}, {1001, 9 * ms}, {2001, 4 * ms}, {4001, 8 * ms}}, map[int]time.Duration{2: ms, 4: 9 * ms})
	for _, c := range []struct {
		bytes int64
		links int
		part  float64 // of the rate
		want  time.Duration
	}{
		{1, 6, 1, 2 * ms},
		{501, 6, 1, 3 * ms}, // to 1001 bytes, which take 4 ms at most
		{1001, 6, 1, 4 * ms},
		{1501, 6, 1, 4 * ms},
		{3001, 6, 1, 6 * ms},
		{4001, 6, 1, 8 * ms},
		// 8·1448/1514 Mbit/s carry a byte of payload with its headers in (1514/1448)² µs.
		{6001, 6, 1, 8*ms + 2_186_476*time.Nanosecond},
		{3001, 6, 0.5, 10 * ms},
		{1, 6, 0.5, 2 * ms},
		{1, 2, 1, ms},
		{1, 4, 1, 2 * ms}, // as far apart
		{3001, 2, 1, 5 * ms},
		{3001, 2, 0.5, 9 * ms},
		{1, 8, 1, 2 * ms},
	} {
		if got := a.took(c.bytes, c.links, a.mbit*c.part); (got - c.want).Abs() > time.Microsecond {
			t.Errorf("%d bytes over %d links at %g of the rate: %v, want %v", c.bytes, c.links, c.part, got, c.want)
		}
	}
	if a := newAlone("base", 1, []point{{1, 3 * ms}}, map[int]time.Duration{2: 2 * ms, 4: ms}); a.byteTook(2) != ms || a.byteTook(4) != ms {
		t.Errorf("%+v", a.near)
	}
}

func TestBaseName_whatRan(t *testing.T) {
	if got := baseName(plainHosts()); got != labBase {
		t.Errorf("%q", got)
	}
	rows, err := Select([]string{"presto"})
	if err != nil {
		t.Fatal(err)
	}
	if got := baseName(rows[0].Hosts); !strings.HasPrefix(got, "weft, each") || !strings.Contains(got, "idle lab") {
		t.Errorf("%q", got)
	}
}

func TestAloneSizes_areBounded(t *testing.T) {
	for _, mbit := range []float64{minRateMbit, 1, 10, maxRateMbit} {
		sizes := aloneSizes(mbit)
		if sizes[0] != 1 {
			t.Errorf("%v", sizes)
		}
		for _, s := range sizes[1:] {
			if took := time.Duration(float64(s) * 8e3 / mbit); took > longestAlone {
				t.Errorf("%d bytes take %v at %g Mbit/s", s, took, mbit)
			}
		}
	}
	if n := len(aloneSizes(10)); n < 6 {
		t.Errorf("%d sizes at 10 Mbit/s", n)
	}
}
