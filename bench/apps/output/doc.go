// Package output reads what client programs print about the work that they did: redis-benchmark,
// pgbench, wrk, iperf3 and rsync. A program that did less work than it was asked for is an error,
// and so is text that is cut short. The samples in testdata are what Debian's programs printed.
package output

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// excerptLength is how much of a program's text an error shows.
const excerptLength = 200

// wrong is the error that a program's text has something else in it than it should.
func wrong(program, text, format string, args ...any) error {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > excerptLength {
		text = strings.ToValidUTF8(text[:excerptLength], "") + "..."
	}
	return fmt.Errorf("%s: %s; it printed %q", program, fmt.Sprintf(format, args...), text)
}

// positive reads a finite number above zero.
func positive(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && v > 0 && !math.IsInf(v, 0)
}

// after returns what follows a label on the line that begins with it.
func after(text, label string) (string, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), label); ok && strings.HasSuffix(line, "\n") {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}
