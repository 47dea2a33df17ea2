package workload

import (
	"bytes"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestCDF_meansAreThoseOfTheHeaders(t *testing.T) {
	mean := regexp.MustCompile(`(?m)^# mean=(\d+)$`)
	for _, name := range CDFNames() {
		text, err := os.ReadFile("cdf/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte("# origin:")) {
			t.Errorf("%s does not say where it comes from", name)
		}
		c, err := LoadCDF(name)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := strconv.ParseFloat(string(mean.FindSubmatch(text)[1]), 64)
		if math.Abs(c.Mean()-want) > 1 {
			t.Errorf("%s: mean %.1f, the header says %.0f", name, c.Mean(), want)
		}
	}
	if len(CDFNames()) < 10 {
		t.Errorf("%d distributions", len(CDFNames()))
	}
}

// Kolmogorov-Smirnov, with rounding to whole bytes taken into account.
func TestCDF_samplesFollow(t *testing.T) {
	const n, seed = 50_000, 7
	for _, name := range CDFNames() {
		c, _ := LoadCDF(name)
		r := newRand(seed)
		all := make([]int64, n)
		for i := range all {
			all[i] = c.sample(r)
		}
		slices.Sort(all)
		worst := 0.0
		for i, x := range all {
			if i+1 < n && all[i+1] == x {
				continue
			}
			worst = max(worst, math.Abs(float64(i+1)/n-c.Part(float64(x)+0.5)))
		}
		if limit := 1.95 / math.Sqrt(n); worst > limit { // exceeded once in 1,000
			t.Errorf("%s, seed %d: %.5f off, at most %.5f", name, seed, worst, limit)
		}
		if all[0] < 1 {
			t.Errorf("%s: a flow of %d bytes", name, all[0])
		}
	}
}

func TestCDF_byHand(t *testing.T) {
	c, err := ParseCDF([]byte("# a step, a line, a flat piece, a jump\n\n10 0.2\n20 0.6\n30 0.6\n40 0.6\n40 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := 10*.2 + 15*.4 + 40*.4; math.Abs(c.Mean()-want) > 1e-9 {
		t.Errorf("mean %v, want %v", c.Mean(), want)
	}
	for _, p := range []struct{ p, q float64 }{{0, 10}, {.2, 10}, {.3, 12.5}, {.6, 20}, {.61, 40}, {1, 40}} {
		if got := c.quantile(p.p); math.Abs(got-p.q) > 1e-9 {
			t.Errorf("Quantile(%v) = %v, want %v", p.p, got, p.q)
		}
	}
	for _, p := range []struct{ x, p float64 }{{9, 0}, {10, .2}, {15, .4}, {20, .6}, {35, .6}, {39.9, .6}, {40, 1}, {99, 1}} {
		if got := c.Part(p.x); math.Abs(got-p.p) > 1e-9 {
			t.Errorf("Part(%v) = %v, want %v", p.x, got, p.p)
		}
	}
	if got := Fixed(2000).sample(newRand(1)); got != 2000 || Fixed(2000).Mean() != 2000 {
		t.Errorf("Fixed(2000) gives %d, mean %v", got, Fixed(2000).Mean())
	}
}

func TestCDF_Truncate(t *testing.T) {
	c, _ := LoadCDF("websearch_dctcp")
	for _, most := range []int64{1, 10_000, 123_456, 10_000_000, 29_999_999} {
		d := c.Truncate(most)
		// The mean of min(size, most), by the definition.
		want, steps := 0.0, 200_000
		for i := range steps {
			want += min(c.quantile((float64(i)+0.5)/float64(steps)), float64(most)) / float64(steps)
		}
		if math.Abs(d.Mean()/want-1) > 1e-4 {
			t.Errorf("cut at %d: mean %.1f, want %.1f", most, d.Mean(), want)
		}
		if got := d.quantile(1); got != float64(most) {
			t.Errorf("cut at %d: the largest is %v", most, got)
		}
	}
	if c.Truncate(30_000_000).Mean() != c.Mean() {
		t.Error("a cut at the largest size changes the mean")
	}
}

func TestParseCDF_errorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"0 0\n1 2 3\n":      "line 2",
		"0 0\nx 1\n":        "line 2",
		"# c\n0 0\n5 1.1\n": "line 3",
		"5 0\n4 1\n":        "line 2",
		"5 0.5\n6 0.4\n":    "line 2",
		"NaN 0\n6 1\n":      "line 1",
		"0 0\n6 NaN\n":      "line 2",
		"0 0\n6 0.9\n":      "last probability",
		"":                  "last probability",
	} {
		if _, err := ParseCDF([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
	if _, err := LoadCDF("nothing"); err == nil || !strings.Contains(err.Error(), "websearch_dctcp") {
		t.Errorf("an unknown name: %v", err)
	}
}

func FuzzParseCDF(f *testing.F) {
	f.Add([]byte("0 0\n10 0.5\n10 1\n"), 0.7)
	f.Fuzz(func(t *testing.T, text []byte, p float64) {
		c, err := ParseCDF(text)
		if err != nil || !(p >= 0 && p <= 1) {
			return
		}
		// The two are each other's inverse.
		if q := c.quantile(p); c.Part(math.Nextafter(q, math.Inf(1))) < p-1e-9 && c.Part(q*(1+1e-9)+1e-9) < p-1e-9 {
			t.Errorf("%q: Quantile(%v) = %v, Part of which is %v", text, p, q, c.Part(q))
		}
		if d := c.Truncate(5); d.Mean() > c.Mean()+1e-9*c.Mean() || d.quantile(1) > 5 {
			t.Errorf("%q: cut at 5, the mean is %v of %v and the largest %v", text, d.Mean(), c.Mean(), d.quantile(1))
		}
	})
}

func TestCDF_Scale(t *testing.T) {
	for _, name := range CDFNames() {
		c, _ := LoadCDF(name)
		d := c.Scale(0.25)
		if math.Abs(d.Mean()-c.Mean()/4) > 1e-6*c.Mean() {
			t.Errorf("%s: the mean becomes %v of %v", name, d.Mean(), c.Mean())
		}
		for p := 0.; p <= 1; p += 1. / 64 {
			if got, want := d.quantile(p), c.quantile(p)/4; math.Abs(got-want) > 1e-9*want {
				t.Errorf("%s: quantile %v is %v, want %v", name, p, got, want)
			}
		}
		if again, _ := LoadCDF(name); again.Mean() != c.Mean() {
			t.Errorf("%s: Scale changes its receiver", name)
		}
	}
}

// Sizes on either side keep their proportions, and a part is where it should be.
func TestCDF_WithPart(t *testing.T) {
	c, err := LoadCDF("fb_webserver_intracluster")
	if err != nil {
		t.Fatal(err)
	}
	const at = 1460
	for _, part := range []float64{.1, c.Part(at), .8, .95} {
		d := c.WithPart(at, part)
		if got := d.Part(at); math.Abs(got-part) > 1e-9 {
			t.Errorf("%v of the flows are no larger than %d, want %v", got, at, part)
		}
		for _, size := range []float64{100, 700, at, 5_000, 64_000, 900_000} {
			got, want := d.Part(size)/part, c.Part(size)/c.Part(at)
			if size > at {
				got, want = (1-d.Part(size))/(1-part), (1-c.Part(size))/(1-c.Part(at))
			}
			if math.Abs(got-want) > 1e-9 {
				t.Errorf("part %v, size %v: %v, want %v", part, size, got, want)
			}
		}
		if part == c.Part(at) && math.Abs(d.Mean()-c.Mean()) > 1e-6 {
			t.Errorf("mean %v, want %v", d.Mean(), c.Mean())
		}
	}
}
