package output

import (
	"fmt"
	"strings"

	"weft/bench/stats"
)

// Pgbench checks that pgbench says that it did this many transactions, and that none failed.
func Pgbench(text string, transactions int) error {
	const program = "pgbench"
	done, ok := after(text, "number of transactions actually processed: ")
	if want := fmt.Sprintf("%d/%d", transactions, transactions); !ok || done != want {
		return wrong(program, text, "%q transactions were processed in place of %s", done, want)
	}
	if failed, ok := after(text, "number of failed transactions: "); ok && !strings.HasPrefix(failed, "0 ") { // since PostgreSQL 15
		return wrong(program, text, "transactions failed: %s", failed)
	}
	if _, ok := after(text, "tps = "); !ok {
		return wrong(program, text, "the text is cut short: no line of tps")
	}
	return nil
}

// PgbenchLog reads the log of pgbench --log, which has a line for each transaction, and returns
// the 99th percentile of their times in milliseconds.
func PgbenchLog(text string, transactions int) (p99Ms float64, err error) {
	const program = "the log of pgbench"
	if text != "" && !strings.HasSuffix(text, "\n") {
		return 0, wrong(program, text, "the last line is cut short")
	}
	var all []float64
	for line := range strings.Lines(text) {
		// client, number, microseconds, script, and the time in seconds and microseconds
		fields := strings.Fields(line)
		if len(fields) < 6 {
			return 0, wrong(program, line, "line %d has %d fields, not 6", len(all)+1, len(fields))
		}
		micros, ok := positive(fields[2])
		if !ok {
			return 0, wrong(program, line, "line %d: %q is no time in microseconds", len(all)+1, fields[2])
		}
		all = append(all, micros/1000)
	}
	if len(all) != transactions || transactions == 0 {
		return 0, wrong(program, text, "%d transactions in place of %d", len(all), transactions)
	}
	return stats.Percentile(all, 99), nil
}
