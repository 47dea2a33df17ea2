package output

import (
	"encoding/csv"
	"slices"
	"strings"
)

// Redis reads what redis-benchmark --csv prints about its tests, and returns the largest of
// their 99th percentiles in milliseconds. Every one of tests, such as GET, must be there.
func Redis(text string, tests ...string) (p99Ms float64, err error) {
	const program = "redis-benchmark"
	begin := strings.Index(text, `"test"`)
	if begin < 0 {
		return 0, wrong(program, text, "no head of a table")
	}
	if !strings.HasSuffix(text, "\n") {
		return 0, wrong(program, text, "the table is cut short")
	}
	table, err := csv.NewReader(strings.NewReader(text[begin:])).ReadAll() // it checks the number of columns
	if err != nil {
		return 0, wrong(program, text, "no table of values with commas (%v)", err)
	}
	column := slices.Index(table[0], "p99_latency_ms")
	if column < 0 {
		return 0, wrong(program, text, "no column p99_latency_ms; install redis-tools 6.2 or later")
	}
	for _, test := range tests {
		i := slices.IndexFunc(table, func(line []string) bool { return line[0] == test })
		if i < 0 {
			return 0, wrong(program, text, "no line of the test %s", test)
		}
		v, ok := positive(table[i][column])
		if !ok {
			return 0, wrong(program, text, "the 99th percentile of %s is %q, no number above 0", test, table[i][column])
		}
		p99Ms = max(p99Ms, v)
	}
	return p99Ms, nil
}
