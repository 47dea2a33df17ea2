package testbed

import (
	"errors"

	"weft/internal/dataplane"
	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/link"
)

// gateway is a host's dataplane.Gateway and what leads packets to it. The Gateway
// owns the devices once there is one. A nil field is not open yet.
type gateway struct {
	*dataplane.Gateway
	tun    *link.TUN
	steer  *hostprog.Steer
	socket *link.Packet
}

// openTUN opens the device that the plan leads packets into.
func (g *gateway) openTUN(plan hostsetup.Plan, overhead, flowcell int) (err error) {
	g.tun, err = link.OpenTUN(link.TUNConfig{
		Name: plan.TUN, Address: plan.Address, Overhead: overhead, Offload: true, NoForwardCheck: true,
		PayloadMax: flowcell, // what is longer would not be divided
	})
	return err
}

// start runs in the host's namespace. From its end on the kernel gets no TCP of
// the fabric but by the gateway.
func (g *gateway) start(s *sprayer) (err error) {
	g.steer, err = hostprog.AttachSteer(hostprog.SteerConfig{Uplink: Uplink, Rules: []hostprog.SteerRule{
		{Address: s.host.Addr, What: hostprog.SteerTCP | hostprog.SteerTunnelErrors}}})
	if err != nil {
		return err
	}
	if g.socket, err = link.OpenPacket(link.PacketConfig{Interface: Uplink, Filter: g.steer.Filter()}); err != nil {
		return err
	}
	c := s.bed.config
	g.Gateway, err = dataplane.NewGateway(dataplane.GatewayConfig{
		Address:       s.host.Addr,
		Topology:      c.known(),
		Policy:        s.policy.Name,
		PolicyOptions: c.Policy,
		Resequencer:   c.Resequencer,
		Seed:          c.Seed<<20 + uint64(s.host.ID) + 1,
		Carrier:       c.Carrier,
		Programs:      g.tun,
		Fabric:        g.socket,
	})
	if err != nil {
		return err
	}
	return g.steer.Beat()
}

// count adds what has been put in order. It tells of devices that have failed.
func (g *gateway) count(c *Counters) error {
	r := g.Stats().Resequencer
	c.OutOfOrderBefore += int64(r.ArrivedOutOfOrder)
	c.OutOfOrderAfter += int64(r.DeliveredOutOfOrder)
	return g.Err()
}

// close first gives the kernel its packets back.
func (g *gateway) close() error {
	var errs []error
	if g.steer != nil {
		errs = append(errs, g.steer.Close())
	}
	if g.Gateway != nil {
		return errors.Join(append(errs, g.Gateway.Close())...)
	}
	if g.socket != nil {
		errs = append(errs, g.socket.Close())
	}
	if g.tun != nil {
		errs = append(errs, g.tun.Close())
	}
	return errors.Join(errs...)
}
