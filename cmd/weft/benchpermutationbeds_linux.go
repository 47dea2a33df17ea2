package main

import (
	"context"
	"errors"
	"fmt"

	"weft/bench/testbed"
	"weft/encap"
	"weft/lab"
	"weft/policy"
	"weft/stack"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// permutationBed is the hosts of a row. One bed does for both families.
type permutationBed interface {
	// session returns the hosts' TCP of a family, when all carry its packets.
	session(ctx context.Context, family string) (*testbed.Session, error)
	Close() error
}

// bed starts the hosts of a row.
func (o *benchPermutationOptions) bed(ctx context.Context, l *lab.Lab, row permutationRow) (permutationBed, error) {
	if row.mode != modeEmbedded {
		hosts, err := o.hosts(row, o.families[0])
		if err != nil {
			return nil, err
		}
		d, err := testbed.StartDaemons(ctx, l, hosts, o.self, o.env)
		return &daemonBed{d, o, row}, err
	}
	var list []testbed.EmbeddedHost
	for n := range o.shape.Hosts() {
		h, err := o.embedded(n, row)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
		list = append(list, h)
	}
	e, err := testbed.StartEmbedded(l, list)
	return &embeddedBed{e}, err
}

// daemonBed is the kernels' TCP, by weft host or without.
type daemonBed struct {
	*testbed.Daemons
	o   *benchPermutationOptions
	row permutationRow
}

func (b *daemonBed) session(ctx context.Context, family string) (s *testbed.Session, err error) {
	if b.Hosts, err = b.o.hosts(b.row, family); err != nil {
		return nil, err
	}
	if err := b.Await(ctx); err != nil {
		return nil, err
	}
	return b.Session()
}

// embeddedBed is the TCP of embedded Hosts.
type embeddedBed struct{ *testbed.Embedded }

func (b *embeddedBed) session(ctx context.Context, family string) (*testbed.Session, error) {
	if err := b.Await(ctx, family == "6"); err != nil {
		return nil, err
	}
	return b.Session(family == "6"), nil
}

// embedded is an embedded Host at a host. It is told the fabric, as one process can have
// only one session of BGP.
func (o *benchPermutationOptions) embedded(n topology.Node, row permutationRow) (h testbed.EmbeddedHost, err error) {
	h = testbed.EmbeddedHost{ID: n.ID, Name: n.Name, Config: stack.Config{
		Address: o.shape.EmbeddedAddr(n.ID), Topology: o.shape, Policy: row.policy, Resequencer: o.demo.reseq(),
		PolicyOptions: policy.Options{FlowcellBytes: o.demo.flowcell, LinkRateBits: o.demo.rate * 1e6},
		Liveness:      &stack.Liveness{}, Simulation: stack.Simulation{Seed: o.demo.seed<<20 + uint64(n.ID) + 1},
	}}
	if o.bySIDs {
		h.Config.Carrier = encap.CarrierSRv6
	}
	if o.graph == nil {
		return h, nil
	}
	own, c := o.graph.Node(graph.NodeID(n.ID)), &h.Config
	h.Name, c.Address, c.Address6 = own.Name, operator.Embedded(own, false), operator.Embedded(own, true)
	var err6 error
	c.Topology, err = topology.FromGraph(o.graph, c.Address)
	c.Topology6, err6 = topology.FromGraph(o.graph, c.Address6)
	return h, errors.Join(err, err6)
}
