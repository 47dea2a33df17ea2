package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weft/link"
	"weft/liveness"
	"weft/topology"
)

// newEgress6 returns the Egress of IPv6 packets, whose outer headers are IPv6, too; nil if
// they leave by the one of IPv4. Both share what is in flight, where one ingress looks.
func (c *GatewayConfig) newEgress6(four *Egress) (*Egress, error) {
	switch {
	case c.Topology6 == nil:
		return nil, nil
	case c.Fabric == nil:
		return nil, errors.New("Topology6 is given without Fabric, by which IPv6 leaves: give both")
	}
	six := four.config // with the seeds that were drawn
	six.Address, six.Address6, six.Topology, six.Device = c.Address6, netip.Addr{}, c.Topology6, c.Fabric
	six.Inner6, six.UplinkEncapsulates = true, false
	e, err := NewEgress(six)
	if err != nil {
		return nil, fmt.Errorf("Topology6: %w", err)
	}
	e.flights = four.flights
	return e, nil
}

// egresses lists those in use, that of IPv4 first.
func (g *Gateway) egresses() []*Egress {
	if g.egress6 == nil {
		return []*Egress{g.egress}
	}
	return []*Egress{g.egress, g.egress6}
}

// send sends packets that programs have sent, each by the egress of its family. Packets of
// one family stay in order.
func (g *Gateway) send(bufs [][]byte, sizes []int) {
	for len(bufs) > 0 {
		e, n := g.egressOf(bufs[0]), 1
		for n < len(bufs) && g.egressOf(bufs[n]) == e {
			n++
		}
		e.forward(bufs[:n], sizes[:n])
		bufs, sizes = bufs[n:], sizes[n:]
	}
}

// egressOf returns the egress of a packet behind link.SuperHeadroom.
func (g *Gateway) egressOf(buf []byte) *Egress {
	if g.egress6 != nil && buf[link.SuperHeadroom]>>4 == 6 {
		return g.egress6
	}
	return g.egress
}

// receiveAcks tells both: each knows its own flows.
func (g *Gateway) receiveAcks(acks []arrivedAck) {
	for _, e := range g.egresses() {
		e.receiveAcks(acks)
	}
}

// SetTopology makes the Gateway spread later packets over the live paths of t, which must
// contain its address, or be seen from its IPv6 address like GatewayConfig.Topology6.
func (g *Gateway) SetTopology(t *topology.Topology) error {
	if t == nil {
		return errors.New("dataplane: SetTopology: no topology")
	}
	if g.config.Tunnel != nil {
		return errors.New("dataplane: SetTopology: a Tunnel has none")
	}
	for _, e := range g.egresses() {
		own := e.config.Address
		if id, ok := t.ByAddr(own); ok && int(id) < t.NumHosts() && t.Node(id).Addr.Is6() == own.Is6() {
			e.SetTopology(t)
			return nil
		}
	}
	return fmt.Errorf("dataplane: SetTopology: %v is no host of %v", g.config.Address, t)
}

// SetCarriage6 is SetCarriage for IPv6 packets. It does nothing without
// GatewayConfig.Topology6.
func (g *Gateway) SetCarriage6(c *liveness.Carriage) {
	if g.egress6 != nil {
		g.egress6.SetCarriage(c)
	}
}

// Observe6 is Observe for IPv6 packets. It reports nothing without GatewayConfig.Topology6.
func (g *Gateway) Observe6(o Observer, now time.Duration) {
	if g.egress6 != nil {
		g.egress6.Report(o, now)
	}
}
