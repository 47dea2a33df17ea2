package prober

import (
	"errors"
	"fmt"
	"net/netip"

	"weft/encap"
	"weft/liveness"
	"weft/topology"
)

func (c *Config) checkCarrier() error {
	switch {
	case c.Carrier == encap.CarrierIPIP:
		return nil
	case c.Carrier != encap.CarrierSRv6:
		return fmt.Errorf("Carrier %v is not of IP; use ipip or srv6", c.Carrier)
	case !c.Gateway.IsValid():
		return errors.New("Gateway is missing: name the edge switch's address")
	}
	return nil
}

// send is called with the lock held.
func (p *Prober) send(probe *liveness.Probe) {
	var ports []int
	if p.carrier == encap.CarrierSRv6 {
		var ok bool
		if ports, ok = p.labels.Of(probe); !ok {
			p.stats.Unsent++
			return
		}
	}
	p.post(probe.Append(p.buf[:encap.MaxOverhead]), probe.Via, ports)
}

// post sends an inner packet, behind room for the outer header, by a bouncing
// switch or out of these ports.
func (p *Prober) post(packet []byte, via netip.Addr, ports []int) {
	outer, err := outerOf(p.carrier, p.address, via, ports)
	if err == nil {
		p.id++
		packet, err = outer.Encapsulate(packet, p.id)
	}
	if err == nil {
		err = p.sockets.send(packet, via)
	}
	if err != nil {
		p.stats.Unsent++
	}
}

// outerOf is the outer header from a host to a bouncing switch, or out of these
// ports.
func outerOf(c encap.Carrier, from, via netip.Addr, ports []int) (encap.Outer, error) {
	if c == encap.CarrierIPIP {
		return encap.NewIPIPOuter(from, via)
	}
	sids, err := encap.SIDs(ports)
	if err != nil {
		return encap.Outer{}, err
	}
	return encap.NewSRv6Outer(topology.Addr6(from), sids)
}
