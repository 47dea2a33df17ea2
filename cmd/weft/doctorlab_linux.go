package main

import (
	"context"
	"fmt"
	"slices"

	"weft/internal/doctor"
	"weft/internal/doctor/gather"
	"weft/internal/exitcode"
	"weft/lab"
	"weft/topology"
)

// examineLab looks at all nodes of a lab, the switches first.
func examineLab(ctx context.Context, name string, o gather.Options) (who string, all []doctor.Finding, err error) {
	l, err := lab.Open(name)
	if err != nil {
		return "", nil, exitcode.AsAbsent(err)
	}
	defer l.Close()
	nodes := l.Nodes()
	slices.Reverse(nodes)
	all = examineAll(len(nodes), func(i int) []doctor.Finding { return examineNode(ctx, l, nodes[i], o) })
	return fmt.Sprintf("lab %s, %d nodes", name, len(nodes)), all, nil
}

// examineNode looks at one node of a lab.
func examineNode(ctx context.Context, l *lab.Lab, n topology.Node, o gather.Options) (all []doctor.Finding) {
	err := l.Do(n.ID, func() error {
		o.Lab = &gather.Lab{Host: n.Layer == topology.LayerHost}
		for _, p := range l.Expect(n.ID) {
			peer, err := l.Lookup(p.Peer)
			o.Lab.Ports = append(o.Lab.Ports, gather.Port{Name: p.Port, Host: err == nil && peer.Layer == topology.LayerHost, Peer: p.Peer, MTU: p.MTU, RateMbit: p.RateMbit})
		}
		if !o.Lab.Host {
			plan, err := l.Plan(n.ID)
			if err != nil {
				return err
			}
			o.Lab.Plan = gather.PlanOf(plan)
			if l.Config.Graph != nil {
				o.Lab.Plan.Routes = nil // are FRR's
			}
		}
		f, err := gather.Facts(ctx, o)
		if err == nil {
			all = doctor.Examine(f)
		}
		return err
	})
	if err != nil {
		all = []doctor.Finding{doctor.Unreachable(err.Error(), "weft lab up repairs the lab")}
	}
	for i := range all {
		all[i].Node = n.Name
	}
	return all
}
