package fct

import (
	"slices"

	"weft/bench/named"
	"weft/bench/testbed"
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

// switchRow is plain hosts on switches that choose the next hop by a rule.
func switchRow(balance string) Row {
	hosts := plainHosts()
	hosts.Label = "kernel TCP, switches choose the next hop by " + balance
	return Row{Name: "switch-" + balance, Where: Switch, Hosts: hosts, Balance: balance}
}

// plainHosts have the kernel's TCP and no weft.
func plainHosts() testbed.Row {
	rows := testbed.Rows()
	return rows[slices.IndexFunc(rows, func(r testbed.Row) bool { return r.Kernel && r.Policy == "" && !r.MPTCP })]
}

// Select returns the rows with the given names, in that order.
func Select(names []string) ([]Row, error) {
	return named.Select("row", Rows(), func(r Row) string { return r.Name }, names)
}
