package conga

import (
	"time"

	"weft/bench/sim"
)

// The compared schemes.
const (
	ecmp      = "switch-ecmp"
	conga     = "switch-conga"
	congaFlow = "conga-flow"
	mptcp     = "mptcp"
	wcmp      = "switch-wcmp"
	host      = "conga"
	presto    = "presto"
	drb       = "drb"
)

// flowGap is the gap of CONGA-Flow's flowlets: longer than a path takes, so that a flowlet is
// a flow, or one of those that follow each other on a connection (§5).
const flowGap = 13 * time.Millisecond

// subflows are those of each of MPTCP's connections (§5).
const subflows = 8

// scheme is how one of them is run.
type scheme struct {
	label  string
	policy string            // of sim.Config; "": as the scheme is called
	tune   func(*sim.Config) // nil: nothing else
}

var schemes = map[string]scheme{
	ecmp:      {label: "ECMP"},
	conga:     {label: "CONGA"},
	congaFlow: {label: "CONGA-Flow", policy: conga, tune: func(c *sim.Config) { c.Options.FlowletGap = flowGap }},
	mptcp:     {label: "MPTCP", policy: ecmp, tune: func(c *sim.Config) { c.TCP.Subflows = subflows }},
	wcmp:      {label: "weighted ECMP"},
	host:      {label: "weft's conga, at hosts"},
	presto:    {label: presto},
	drb:       {label: drb},
}

func labelOf(name string) string { return schemes[name].label }

var (
	// testbedSchemes are those of the testbed's figures, ECMP first.
	testbedSchemes = []string{ecmp, conga, congaFlow, mptcp}
	// congas are those of which the text says the same.
	congas = []string{conga, congaFlow}
	// ownSchemes are weft's, shown beside.
	ownSchemes = []string{host, presto, drb}
)

// set has a configuration run a scheme.
func (s scheme) set(c *sim.Config, name string) {
	c.Policy = name
	if s.policy != "" {
		c.Policy = s.policy
	}
	if s.tune != nil {
		s.tune(c)
	}
}
