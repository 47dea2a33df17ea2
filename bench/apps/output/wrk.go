package output

import (
	"fmt"
	"strings"
)

// wrkUnits are those of times that wrk prints, in milliseconds. Longer ones come first where
// one ends with another.
var wrkUnits = []struct {
	name string
	ms   float64
}{{"us", 1e-3}, {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}}

// Wrk reads what wrk --latency prints, and returns the 99th percentile of its requests in
// milliseconds. There must be this many requests, without errors.
func Wrk(text string, requests int) (p99Ms float64, err error) {
	const program = "wrk"
	for _, label := range []string{"Socket errors:", "Non-2xx or 3xx responses:"} {
		if what, ok := after(text, label); ok {
			return 0, wrong(program, text, "%s %s", label, what)
		}
	}
	percentile, ok := after(text, "99%")
	if !ok {
		return 0, wrong(program, text, "no line of the 99th percentile")
	}
	if p99Ms, ok = wrkTime(percentile); !ok {
		return 0, wrong(program, text, "the 99th percentile is %q, no time", percentile)
	}
	for line := range strings.Lines(text) {
		var n int
		if _, after, ok := strings.Cut(line, " requests in "); !ok || !strings.HasSuffix(after, " read\n") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%d requests in ", &n); err != nil {
			return 0, wrong(program, text, "no number of requests in %q", line)
		}
		if n < requests {
			return 0, wrong(program, text, "%d requests in place of %d", n, requests)
		}
		return p99Ms, nil
	}
	return 0, wrong(program, text, "the text is cut short: no line of requests")
}

func wrkTime(s string) (ms float64, ok bool) {
	for _, u := range wrkUnits {
		if number, has := strings.CutSuffix(s, u.name); has {
			if v, ok := positive(number); ok {
				return v * u.ms, true
			}
		}
	}
	return 0, false
}
