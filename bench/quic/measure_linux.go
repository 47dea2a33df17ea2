package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"weft/lab"
	"weft/topology"
)

// port is the QUIC server's.
const port = 4433

// rig is a fabric with a host at each of two leaves.
type rig struct {
	options
	lab      *lab.Lab
	from, to topology.Node
	weft     string // the command
	scratch  string
}

// Packets on a link, Ethernet's header included: the outer header, IPv4 and UDP.
const (
	headers      = 14 + 20 + 8
	outerHeaders = 20
)

func measure(ctx context.Context, o options, print func(result)) (err error) {
	r := &rig{options: o}
	if r.scratch, err = os.MkdirTemp("", "weft-quic-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.scratch)
	if err := r.buildWeft(ctx); err != nil {
		return err
	}
	top, err := topology.Parse(fmt.Sprintf("leaf-spine:leaves=2,spines=4,hosts=1,host-rate=%g,fabric-rate=%g", o.rate*10, o.rate))
	if err != nil {
		return err
	}
	r.from, r.to = top.Node(0), top.Node(1)
	if r.lab, err = lab.Hold(ctx, lab.Config{Name: "quic", Topology: top}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.lab.Close()) }()
	for range o.rounds {
		for _, c := range []struct {
			name  string
			outer int
			run   func(context.Context, func() error) error
		}{
			{"quic/kernel", 0, func(_ context.Context, f func() error) error { return f() }},
			{"quic/host", outerHeaders, r.withHosts},
		} {
			err := c.run(ctx, func() error {
				got, err := r.transfer(ctx)
				if err == nil {
					print(r.result(c.name, got, headers+c.outer))
				}
				return err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	return nil
}

// result puts what was counted in terms of the paths.
func (r *rig) result(name string, m measured, headers int) result {
	seconds := m.time.Seconds()
	wire := float64(m.received.bytes) + float64(m.received.packets)*float64(headers)
	perGB := func(n float64) float64 { return max(0, n) / (float64(m.sent.bytes) / 1e9) }
	return result{
		Case: name, Path: r.rate,
		Mbps:    float64(m.stream) * 8 / 1e6 / seconds,
		Percent: 100 * wire * 8 / 1e6 / seconds / (4 * r.rate),
		Lost:    perGB(float64(m.sent.lost)),
		False:   perGB(float64(m.sent.lost) - (float64(m.sent.packets) - float64(m.all.packets))),
	}
}

// packetConn opens a socket of a host.
func (r *rig) packetConn(n topology.Node, port int) (conn *net.UDPConn, err error) {
	err = r.lab.Do(n.ID, func() error {
		conn, err = net.ListenUDP("udp4", &net.UDPAddr{Port: port})
		return err
	})
	return conn, err
}

// warmup is what slow start takes.
const warmup = 2 * time.Second
