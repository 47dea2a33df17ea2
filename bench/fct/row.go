package fct

import (
	"fmt"
	"slices"
	"strings"

	"weft/bench/named"
	"weft/bench/testbed"
	"weft/internal/balance"
)

// Where says who balances the load.
type Where string

// Who balances the load: hosts by weft, switches, or the kernels as they are without weft.
const (
	Host   Where = "host"
	Switch Where = "switch"
	Kernel Where = "kernel"
)

// Row is a way to balance the load.
type Row struct {
	Name  string
	Where Where
	Hosts testbed.Row // what runs at hosts
	// Balance is the rule by which switches choose the next hop; "": the kernel's routes. Each
	// rule has a fabric of its own (Options.Open).
	Balance string
}

// DefaultRows are measured where nobody says which.
var DefaultRows = []string{"kernel-ecmp", "kernel-drb", "host-auto", "gateway-presto", "drb"}

// Rows returns all rows: every kind of host over the kernel's routes, then the switches.
func Rows() (rows []Row) {
	for _, h := range testbed.Rows() {
		where := Host
		if h.Policy == "" {
			where = Kernel
		}
		rows = append(rows, Row{Name: h.Name, Where: where, Hosts: h})
	}
	for _, rule := range switchRules {
		rows = append(rows, switchRow(rule))
	}
	return rows
}

// switchRules are the rules by which switches balance; each is a row.
var switchRules = []string{"two-level", "classifier", "rb", "rrb", "drb", "letflow", "drill", "conga", "luopan"}

const switchPrefix = "switch-"

// switchRow is plain hosts on switches that choose the next hop by a rule.
func switchRow(rule string) Row {
	hosts := plainHosts()
	hosts.Label = "kernel TCP, switches choose the next hop by " + rule
	return Row{Name: switchPrefix + rule, Where: Switch, Hosts: hosts, Balance: rule}
}

// plainHosts have the kernel's TCP and no weft.
func plainHosts() testbed.Row {
	rows := testbed.Rows()
	return rows[slices.IndexFunc(rows, func(r testbed.Row) bool { return r.Kernel && r.Policy == "" && !r.MPTCP })]
}

// Select returns the rows with the given names, in that order. A name of a switch's row may have
// the rule's parameters behind it, as in switch-letflow:gap=60ms.
func Select(names []string) ([]Row, error) {
	all := Rows()
	for _, name := range names {
		rule, ok := strings.CutPrefix(name, switchPrefix)
		if !ok || !strings.Contains(rule, ":") {
			continue
		}
		if _, err := balance.Parse(rule); err != nil {
			return nil, fmt.Errorf("row %q: %w", name, err)
		}
		all = append(all, switchRow(rule))
	}
	return named.Select("row", all, func(r Row) string { return r.Name }, names)
}
