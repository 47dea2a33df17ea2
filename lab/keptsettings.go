package lab

import (
	"fmt"

	"weft/topology"
	"weft/topology/graph"
)

// labSettings are equal for labs that count as the same.
type labSettings struct {
	Topology    string  `json:"topology,omitempty"`
	Graph       string  `json:"graph,omitempty"`
	BFD         bool    `json:"bfd,omitempty"`
	Only        string  `json:"only,omitempty"`
	Unlimited   bool    `json:"unlimited,omitempty"`
	RateMbit    float64 `json:"rate_mbit"`
	QueueBytes  int     `json:"queue_bytes"`
	BurstBytes  int     `json:"burst_bytes"`
	MTU         int     `json:"mtu"`
	GSOMaxBytes int     `json:"gso_max_bytes,omitempty"`

	Routing string `json:"routing,omitempty"`

	SRv6    bool  `json:"srv6,omitempty"`
	Metered bool  `json:"metered,omitempty"`
	Meter   Meter `json:"meter,omitzero"`

	Balance string `json:"balance,omitempty"`
}

func (c Config) settings() labSettings {
	s := labSettings{BFD: c.BFD, Only: c.onlyNames(), Unlimited: c.Unlimited, RateMbit: c.RateMbit,
		QueueBytes: c.QueueBytes, BurstBytes: c.BurstBytes, MTU: c.MTU, GSOMaxBytes: c.GSOMaxBytes, Routing: c.Routing, SRv6: c.SRv6, Balance: c.Balance}
	if c.Graph != nil {
		s.Graph = string(c.Graph.Text())
	} else {
		s.Topology = c.Topology.String()
	}
	if c.Meter != nil {
		s.Metered, s.Meter = true, *c.Meter
	}
	return s
}

func (s labSettings) config(name string) (Config, error) {
	c := Config{Name: name, BFD: s.BFD, Unlimited: s.Unlimited, RateMbit: s.RateMbit,
		QueueBytes: s.QueueBytes, BurstBytes: s.BurstBytes, MTU: s.MTU, GSOMaxBytes: s.GSOMaxBytes, Routing: s.Routing, SRv6: s.SRv6, Balance: s.Balance}
	if s.Metered {
		c.Meter = &s.Meter
	}
	var err error
	if s.Graph != "" {
		c.Graph, err = graph.Parse([]byte(s.Graph))
	} else if c.Topology, err = topology.Parse(s.Topology); err == nil {
		c.Only, err = parseOnly(c.Topology, s.Only)
	}
	if err != nil {
		return c, err
	}
	return c, c.setPlant()
}

func (s labSettings) String() string {
	what := s.Topology
	if s.Graph != "" {
		what = "a graph" // that of the plant is as long as a sentence may be
	}
	if s.Only != "" {
		what += ", of that " + s.Only
	}
	if s.Routing != "" {
		what += ", routing " + s.Routing
	}
	if s.SRv6 {
		what += ", srv6"
	}
	if s.Balance != "" {
		what += ", balance " + s.Balance
	}
	if s.Unlimited {
		return fmt.Sprintf("%s, unlimited rate, MTU %d", what, s.MTU)
	}
	if s.Metered {
		what += ", metered"
	}
	return fmt.Sprintf("%s, rate %g Mbit/s, queue %d, burst %d, MTU %d", what, s.RateMbit, s.QueueBytes, s.BurstBytes, s.MTU)
}
