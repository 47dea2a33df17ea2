package report

import (
	"fmt"
	"math"
	"strconv"
)

// narrowSpace separates thousands and units without a line break.
const narrowSpace = "\u202f"

func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// digits rounds to three significant digits, or to whole numbers from 100.
func digits(x float64) string {
	switch a := math.Abs(x); {
	case a >= 99.95:
		return count(int64(math.Round(math.Min(math.Max(x, -1e18), 1e18))))
	case a >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case a == 0:
		return "0"
	default:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
}

// round writes a tick of an axis, which has few digits by itself.
func round(x float64) string {
	if math.Abs(x) >= 1000 {
		return digits(x)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// count groups thousands.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + narrowSpace + s[i:]
	}
	return s
}

func percent(x float64) string { return fmt.Sprintf("%.1f%s%%", x, narrowSpace) }

// idle is percent, or a dash for what is not known.
func idle(x float64) string {
	if x < 0 {
		return "–"
	}
	return percent(x)
}

// mbit writes a rate given in Mbit/s.
func mbit(x float64) string {
	if x >= 1000 {
		return digits(x/1000) + narrowSpace + "Gbit/s"
	}
	return digits(x) + narrowSpace + "Mbit/s"
}

// micros writes a duration given in µs.
func micros(x float64) string {
	switch {
	case x >= 1e6:
		return digits(x/1e6) + narrowSpace + "s"
	case x >= 1e3:
		return digits(x/1e3) + narrowSpace + "ms"
	}
	return digits(x) + narrowSpace + "µs"
}
