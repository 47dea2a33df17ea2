package fct

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/bench/named"
	"weft/bench/testbed"
	"weft/internal/balance"
	"weft/lab"
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
	// Fabric is opened once for all rows that have the same (Options.Open).
	Fabric
}

// DefaultRows are measured where nobody says which.
var DefaultRows = []string{"kernel-ecmp", "kernel-drb", "host-auto", "gateway-presto", "drb"}

// Rows returns all rows: every kind of host over the kernel's routes, the kernel's TCP with
// other congestion controls, then the switches.
func Rows() (rows []Row) {
	for _, h := range testbed.Rows() {
		where := Host
		if h.Policy == "" {
			where = Kernel
		}
		rows = append(rows, Row{Name: h.Name, Where: where, Hosts: h})
	}
	for _, c := range controls {
		rows = append(rows, controlRow(c))
	}
	for _, rule := range switchRules {
		rows = append(rows, switchRow(rule))
	}
	return rows
}

// switchRules are the rules by which switches balance; each is a row.
var switchRules = []string{"two-level", "classifier", "rb", "rrb", "drb", "letflow", "drill", "conga", "luopan"}

const (
	switchPrefix = "switch-"
	mptcpRow     = "kernel-mptcp"
)

// control is a congestion control of the kernel's TCP; each is a row.
type control struct{ name, about string }

// marks is the queue from which switches mark for DCTCP: 20 packets (thesis §5.3.2).
const marks = 20 * (mss + headers)

var controls = []control{
	{"cubic", "as kernel-ecmp"},
	{"bbr", ""},
	{"dctcp", "the kernel's module; switches mark from 20 packets on"},
	{congestionName, "weft's, where the kernel has none; switches mark likewise"},
}

// congestionName is internal/congestion's DCTCP.
const congestionName = "weft_dctcp"

func controlRow(c control) Row {
	hosts := plainHosts()
	hosts.Congestion = c.name
	hosts.Label = "kernel TCP over kernel ECMP, " + c.name
	if c.about != "" {
		hosts.Label += ", " + c.about
	}
	row := Row{Name: "kernel-" + c.name, Where: Kernel, Hosts: hosts}
	if strings.Contains(c.name, "dctcp") {
		row.MarkBytes = marks
	}
	return row
}

// switchRow is plain hosts on switches that choose the next hop by a rule.
func switchRow(rule string) Row {
	hosts := plainHosts()
	hosts.Label = "kernel TCP, switches choose the next hop by " + rule
	return Row{Name: switchPrefix + rule, Where: Switch, Hosts: hosts, Fabric: Fabric{Balance: rule}}
}

// plainHosts have the kernel's TCP and no weft.
func plainHosts() testbed.Row {
	rows := testbed.Rows()
	return rows[slices.IndexFunc(rows, func(r testbed.Row) bool { return r.Kernel && r.Policy == "" && !r.MPTCP })]
}

// Select returns the rows with the given names, in that order. A name of a switch's row may have
// the rule's parameters behind it, as in switch-letflow:gap=60ms, that of MPTCP subflows=1 to
// 32.
func Select(names []string) ([]Row, error) {
	all := Rows()
	for _, name := range names {
		if parameter, ok := strings.CutPrefix(name, mptcpRow+":"); ok {
			row, err := subflowsRow(all, parameter)
			if err != nil {
				return nil, fmt.Errorf("row %q: %w", name, err)
			}
			row.Name = name
			all = append(all, row)
			continue
		}
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

// subflowsRow is MPTCP with a number of subflows, by a parameter subflows=N.
func subflowsRow(all []Row, parameter string) (row Row, err error) {
	number, ok := strings.CutPrefix(parameter, "subflows=")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 || n > lab.MaxManagedSubflows {
		return row, fmt.Errorf("must be %s:subflows=N, N from 1 to %d", mptcpRow, lab.MaxManagedSubflows)
	}
	row = all[slices.IndexFunc(all, func(r Row) bool { return r.Name == mptcpRow })]
	row.Hosts.Subflows = n
	row.Hosts.Label = fmt.Sprintf("kernel MPTCP, %d subflows", n)
	if n > lab.MaxMPTCPSubflows {
		row.Hosts.Label += ", which weft opens"
	}
	return row, nil
}
