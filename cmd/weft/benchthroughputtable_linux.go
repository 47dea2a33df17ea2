package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"weft/bench/throughput"
	"weft/internal/table"
)

func (o *benchThroughputOptions) table(w io.Writer, results []throughput.Result) error {
	fmt.Fprintf(w, "%v\n\n", o.ran)
	rows := throughputRows(results)
	err := table.Table{Head: rows[0], Rows: rows[1:], Text: 2, Keys: 3}.Write(w, table.Width)
	if rows := requestRows(results); rows != nil {
		fmt.Fprintln(w)
		err = errors.Join(err, table.Table{Head: rows[0], Rows: rows[1:], Text: 1, Keys: 2}.Write(w, table.Width))
	}
	return err
}

// requestRows are the rows of the table of requests, its head first; nil if none were made.
func requestRows(results []throughput.Result) (rows [][]string) {
	for _, r := range results {
		if len(r.Latency) == 0 && r.ConnectionsPerSecond == 0 {
			continue
		}
		row := []string{r.Case, strconv.Itoa(r.Connections)}
		head := []string{"case", "connections"}
		for _, l := range r.Latency {
			when := "idle"
			if l.BesideBulk {
				when = "beside bulk"
			}
			head = append(head, fmt.Sprintf("%d B %s, p50/p99/p99.9 µs", l.Bytes, when))
			row = append(row, fmt.Sprintf("%.0f/%.0f/%.0f", l.P50, l.P99, l.P999))
		}
		if r.ConnectionsPerSecond > 0 {
			head = append(head, "connections/s")
			row = append(row, fmt.Sprintf("%.0f", r.ConnectionsPerSecond))
		}
		if rows == nil {
			rows = append(rows, head)
		}
		rows = append(rows, row)
	}
	return rows
}

// about says what the figures are of.
func (o *benchThroughputOptions) about() string {
	return fmt.Sprintf("Medians of %d rounds of %v, after %v, all cases in turn; leaf and spine switches are network namespaces, "+
		"%s, MTU 1500.", o.rounds, o.duration, o.warmup, o.links())
}

func (o *benchThroughputOptions) links() string {
	s := "links without a rate"
	if o.spineRate != 0 {
		s = fmt.Sprintf("links of the spines of %g Mbit/s, the others without a rate", o.spineRate)
	}
	s += fmt.Sprintf(", %d paths", o.paths)
	if o.loss > 0 {
		s += fmt.Sprintf(", %g %% lost", o.loss)
	}
	if o.skew > 0 {
		s += fmt.Sprintf(", one path %v longer", o.skew)
	}
	return s
}

// throughputRows are the rows of the table, its head first.
func throughputRows(results []throughput.Result) [][]string {
	rows := [][]string{{"case", "TCP", "connections", "Gbit/s", "min", "max", "% of ideal", "per core", "of kernel's", "CPU-s/GB", "in processes",
		"allocs/MB", "resent/GB", "spines %", "others' cores", "idle %", "steal %"}}
	for _, r := range results {
		ofKernel, ofIdeal := "", ""
		if r.OfKernel > 0 {
			ofKernel = fmt.Sprintf("%.0f %%", 100*r.OfKernel)
		}
		if r.PercentOfIdeal > 0 {
			ofIdeal = fmt.Sprintf("%.1f", r.PercentOfIdeal)
		}
		var shares []string
		for _, s := range r.PathShares {
			shares = append(shares, fmt.Sprintf("%.1f", 100*s))
		}
		rows = append(rows, []string{r.Case, r.TCP, strconv.Itoa(r.Connections),
			fmt.Sprintf("%.2f", r.Gbps), fmt.Sprintf("%.2f", r.Min), fmt.Sprintf("%.2f", r.Max), ofIdeal,
			fmt.Sprintf("%.2f", r.GbpsPerCore), ofKernel,
			fmt.Sprintf("%.2f", r.CPUPerGB), fmt.Sprintf("%.2f", r.ProcessCPUPerGB),
			fmt.Sprintf("%.0f", r.AllocsPerMB), fmt.Sprintf("%.0f", r.RetransmitsPerGB), strings.Join(shares, " "), fmt.Sprintf("%.2f", r.OtherCores),
			fmt.Sprintf("%.0f", r.Idle), fmt.Sprintf("%.0f", r.Steal)})
	}
	return rows
}
