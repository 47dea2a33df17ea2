package testbed

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weft/flowcell"
	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/policy"
	"weft/topology"
)

// sprayer spreads what a host's kernel sends, as weft host does. What is nil is
// not in use, or not yet.
type sprayer struct {
	bed     *namespaces
	host    topology.Node
	policy  policy.Policy
	setup   *hostsetup.Setup
	spray   *hostprog.Spray
	gateway *gateway  // only in rows with Gateway
	former  []setting // of sprayedTCP, to restore
}

// sprayers are those of all hosts.
type sprayers struct {
	all  []*sprayer
	done chan struct{} // closed when they are
}

// startSprayers starts one at every host.
func (t *namespaces) startSprayers(row Row) (*sprayers, error) {
	s := &sprayers{done: make(chan struct{})}
	for n := range t.config.Topology.Hosts() {
		p, err := t.startSprayer(row, n)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.all = append(s.all, p)
	}
	if row.Gateway {
		go s.beat()
	}
	return s, nil
}

// trySprayer says whether this kernel has what a row needs, by doing it at the
// first host.
func (t *namespaces) trySprayer(row Row) error {
	s, err := t.startSprayer(row, t.config.Topology.Node(0))
	if err != nil {
		return err
	}
	return s.close()
}

// startSprayer starts one, or leaves nothing.
func (t *namespaces) startSprayer(row Row, n topology.Node) (*sprayer, error) {
	p, err := policy.New(row.Policy, t.config.Policy)
	if err != nil {
		return nil, err
	}
	p = p.At(t.config.Policy.Rate(t.config.known().Slowest()))
	s := &sprayer{bed: t, host: n, policy: p}
	err = t.lab.Do(n.ID, func() error { return s.start(row) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", n.Name, err), s.close())
	}
	return s, nil
}

// start runs in the host's namespace. Packets are led to the gateway last, when
// it is there.
func (s *sprayer) start(row Row) (err error) {
	withGateway := row.Gateway
	if row.Shipped && s.policy.Unit.Kind != flowcell.UnitPacket {
		return fmt.Errorf("%s takes each %v at this rate, whose order weft host restores; weft bench throughput --cases host/auto runs it", row.Policy, s.policy.Unit)
	}
	o, err := s.options()
	if err != nil {
		return err
	}
	if withGateway {
		o.TUN = TUN
	}
	plan, err := hostsetup.PlanFor(o)
	if err != nil {
		return err
	}
	if withGateway {
		s.gateway = &gateway{}
		if err := s.gateway.openTUN(plan, s.bed.config.Carrier.Overhead(), s.policy.Unit.Bytes); err != nil {
			return err
		}
	}
	if s.setup, err = hostsetup.Apply(plan); err != nil {
		return err
	}
	perPacket := !withGateway && s.policy.Unit.Kind == flowcell.UnitPacket
	s.spray, err = hostprog.AttachSpray(hostprog.SprayConfig{
		Uplink:       Uplink,
		Addresses:    []netip.Addr{s.host.Addr},
		Topology:     s.bed.config.known(),
		Self:         s.host.ID,
		Policy:       s.policy,
		PerPacketTCP: perPacket,
		Carrier:      s.bed.config.Carrier,
	})
	if err != nil {
		return err
	}
	if perPacket && !row.Shipped {
		s.former, err = applyAll(sprayedTCP)
	}
	if !withGateway {
		return err
	}
	if err := s.gateway.start(s); err != nil {
		return err
	}
	return s.setup.Divert()
}

// options say what the kernel's routes must be, by what they are now.
func (s *sprayer) options() (o hostsetup.Options, err error) {
	t := s.bed.config.Topology
	core := t.Node(topology.NodeID(t.NumNodes() - 1))
	up, err := hostsetup.FindUplink(core.Addr, Uplink)
	if err != nil {
		return o, err
	}
	o = hostsetup.Options{
		Address: s.host.Addr,
		Uplink:  up.Name, Gateway: up.Gateway, MTU: up.MTU - s.bed.config.Carrier.Overhead(),
		Carrier: s.bed.config.Carrier, Sprays: s.policy.Sprays(),
		Fabric: hostsetup.Prefixes(t), Rack: t.RackPrefixes(t.EdgeOf(s.host.ID)),
	}
	if up.Strict {
		o.Strict = []string{up.Name}
	}
	o.FilterAll, err = hostsetup.ReverseFilter()
	return o, err
}

// beat keeps packets from the kernels while the gateways read them.
func (s *sprayers) beat() {
	tick := time.NewTicker(hostprog.SteerPatience / 5)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, p := range s.all {
				// It fails only when it is closed, which is about to end this.
				_ = p.gateway.steer.Beat()
			}
		case <-s.done:
			return
		}
	}
}

// count adds what the gateways have put in order.
func (s *sprayers) count(c *Counters) error {
	for _, p := range s.all {
		if p.gateway == nil {
			continue
		}
		if err := p.gateway.count(c); err != nil {
			return fmt.Errorf("%s: %w", p.host.Name, err)
		}
	}
	return nil
}

// close undoes all.
func (s *sprayers) close() error {
	close(s.done)
	var errs []error
	for _, p := range s.all {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

// close undoes start, as far as that came.
func (s *sprayer) close() error {
	err := s.bed.lab.Do(s.host.ID, func() error {
		var errs []error
		if s.setup != nil && s.gateway != nil {
			errs = append(errs, s.setup.Undivert())
		}
		if s.gateway != nil {
			errs = append(errs, s.gateway.close())
		}
		errs = append(errs, restoreAll(s.former))
		if s.spray != nil {
			errs = append(errs, s.spray.Close())
		}
		if s.setup != nil {
			errs = append(errs, s.setup.Restore())
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", s.host.Name, err)
	}
	return nil
}
