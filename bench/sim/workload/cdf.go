package workload

import (
	"bufio"
	"bytes"
	"embed"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
)

//go:embed cdf/*.txt
var embedded embed.FS

// CDF is a distribution of flow sizes: points, and straight lines between them. It
// is immutable and safe for concurrent use.
type CDF struct {
	bytes, p []float64
	mean     float64
}

// CDFNames returns the names of the distributions that LoadCDF knows. The first
// lines of each file name its source.
func CDFNames() []string {
	entries, err := embedded.ReadDir("cdf")
	if err != nil {
		panic(err) // the directory is part of the program
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".txt")
	}
	return names
}

// LoadCDF returns a distribution by name. An error lists the known names.
func LoadCDF(name string) (*CDF, error) {
	text, err := embedded.ReadFile("cdf/" + name + ".txt")
	if err != nil {
		return nil, fmt.Errorf("workload: no distribution is called %q; there are %s", name, strings.Join(CDFNames(), ", "))
	}
	c, err := ParseCDF(text)
	if err != nil {
		return nil, fmt.Errorf("workload: %s: %w", name, err)
	}
	return c, nil
}

// ParseCDF reads lines of a size in bytes and a cumulative probability. Neither may fall,
// and the last probability is 1. The first point's probability is that of exactly its size.
// Empty lines and those that begin with # are skipped. Errors name the line.
func ParseCDF(text []byte) (*CDF, error) {
	c := new(CDF)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d: %d fields, not a size and a probability", n, len(fields))
		}
		size, err := strconv.ParseFloat(fields[0], 64)
		if err != nil || !(size >= 0 && size <= 1e15) {
			return nil, fmt.Errorf("line %d: %q is no size in bytes", n, fields[0])
		}
		p, err := strconv.ParseFloat(fields[1], 64)
		if err != nil || !(p >= 0 && p <= 1) {
			return nil, fmt.Errorf("line %d: %q is no probability: from 0 to 1", n, fields[1])
		}
		if last := len(c.p) - 1; last >= 0 && (size < c.bytes[last] || p < c.p[last]) {
			return nil, fmt.Errorf("line %d: %s %s is below the point before it", n, fields[0], fields[1])
		}
		c.bytes, c.p = append(c.bytes, size), append(c.p, p)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(c.p) == 0 || c.p[len(c.p)-1] != 1 {
		return nil, fmt.Errorf("the last probability is not 1")
	}
	return c.finish(), nil
}

// Fixed is the distribution in which all flows have one size.
func Fixed(size int64) *CDF {
	return (&CDF{bytes: []float64{float64(size)}, p: []float64{1}}).finish()
}

func (c *CDF) finish() *CDF {
	c.mean = c.bytes[0] * c.p[0]
	for i := 1; i < len(c.p); i++ {
		c.mean += (c.bytes[i] + c.bytes[i-1]) / 2 * (c.p[i] - c.p[i-1])
	}
	return c
}

// Mean is the mean of the lines, in bytes. sample's mean is slightly above it, since sizes
// below a byte become one byte.
func (c *CDF) Mean() float64 { return c.mean }

// quantile is the size that a part p of the flows does not exceed, in bytes.
func (c *CDF) quantile(p float64) float64 {
	i := sort.SearchFloat64s(c.p, p)
	if i == len(c.p) {
		return c.bytes[i-1]
	}
	if i == 0 {
		return c.bytes[i]
	}
	return c.bytes[i-1] + (p-c.p[i-1])/(c.p[i]-c.p[i-1])*(c.bytes[i]-c.bytes[i-1])
}

// Part is the share of flows that are no larger than size.
func (c *CDF) Part(size float64) float64 {
	i := sort.Search(len(c.bytes), func(i int) bool { return c.bytes[i] > size })
	if i == 0 {
		return 0
	}
	if i == len(c.bytes) {
		return 1
	}
	return c.p[i-1] + (size-c.bytes[i-1])/(c.bytes[i]-c.bytes[i-1])*(c.p[i]-c.p[i-1])
}

// sample draws a size, rounded to whole bytes, of at least one.
func (c *CDF) sample(r *rand.Rand) int64 {
	return max(1, int64(math.Round(c.quantile(r.Float64()))))
}

// Truncate returns the distribution in which flows larger than most have exactly that
// size. In a short run the load of the tail is then more even, but there is less of it:
// compute the rate of flows from the result's Mean.
func (c *CDF) Truncate(most int64) *CDF {
	m := float64(most)
	if i := sort.SearchFloat64s(c.bytes, m); i < len(c.bytes) {
		d := &CDF{bytes: slices.Clone(c.bytes[:i]), p: slices.Clone(c.p[:i])}
		if part := c.Part(m); part > 0 {
			d.bytes, d.p = append(d.bytes, m), append(d.p, part)
		}
		d.bytes, d.p = append(d.bytes, m), append(d.p, 1)
		return d.finish()
	}
	return c
}

// WithPart returns the distribution in which a part of the flows is no larger than size.
// How the sizes up to it, and those above it, are distributed among themselves stays. c
// must have sizes on both sides, and part be above 0 and below 1.
func (c *CDF) WithPart(size int64, part float64) *CDF {
	at, m := c.Part(float64(size)), float64(size)
	i := sort.Search(len(c.bytes), func(i int) bool { return c.bytes[i] > m })
	d := new(CDF)
	for k, b := range c.bytes {
		if k == i {
			d.bytes, d.p = append(d.bytes, m), append(d.p, part)
		}
		p := c.p[k] * part / at
		if k >= i {
			p = 1 - (1-c.p[k])*(1-part)/(1-at)
		}
		d.bytes, d.p = append(d.bytes, b), append(d.p, p)
	}
	return d.finish()
}

// Scale returns the distribution whose sizes are factor times those of c, for links that are
// slower than the papers'. factor must be above 0.
func (c *CDF) Scale(factor float64) *CDF {
	d := &CDF{bytes: slices.Clone(c.bytes), p: c.p}
	for i := range d.bytes {
		d.bytes[i] *= factor
	}
	return d.finish()
}
