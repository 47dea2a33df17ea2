package testbed

import (
	"context"
	"errors"

	"weft/internal/simnet"
	"weft/lab"
	"weft/stack"
	"weft/topology"
)

// memory is a fabric of rate-limited links within the process.
type memory struct{ config Config }

// InMemory returns a testbed that needs no privilege.
func InMemory(c Config) Testbed { return memory{c} }

func (memory) Kind() string { return "in memory" }

func (memory) Supports(r Row) error {
	if r.Kernel {
		return errors.New("the kernel's TCP runs in network namespaces only")
	}
	return nil
}

func (m memory) Start(ctx context.Context, row Row) (*Session, error) {
	t := m.config.Topology
	if m.config.Balance != "" {
		return nil, errors.New("switches in memory do not balance: use network namespaces")
	}
	if m := m.config.Meter; m != nil && m.RED != (lab.Meter{}).RED {
		return nil, errors.New("switches in memory have no RED (Meter.RED): use network namespaces, or leave it out")
	}
	network, err := simnet.New(t, m.config.Links())
	if err != nil {
		return nil, err
	}
	runner := simnet.Start(network, 0)
	hosts, err := open(m.config, row, func(n topology.Node, _ stack.Config) (stack.Device, error) { return runner.Device(n.ID), nil })
	if err != nil {
		runner.Close()
		return nil, err
	}
	links := func() ([]LinkBytes, error) {
		var all []LinkBytes
		runner.Inspect(func(n *simnet.Network) { all = CountLinks(n, t) })
		return all, nil
	}
	return weftSession(hosts, links, runner.Close), nil
}

func (memory) Close() error { return nil }
