package switchd

import (
	"errors"
	"time"

	"weft/fabric"
	"weft/internal/elephant"
	"weft/internal/event"
	"weft/internal/service"
)

// leafLease is how long a leaf's packets take paths that nobody looks after: as long as the
// classifier believes its agent.
const leafLease = 3 * time.Second

// balancing is how the switch balances.
func (d *daemon) balancing(c Config) (fabric.BalanceConfig, error) {
	m, err := d.file.meter(c)
	cfg := fabric.BalanceConfig{Rule: d.file.Balance, Ports: m.Ports, Elephants: d.file.duty(c), Leaf: fabric.LeafConfig{Topology: c.Topology, Self: c.Self, Lease: leafLease}}
	for _, port := range c.Topology.Ports(c.Self) {
		cfg.Leaf.Links = append(cfg.Leaf.Links, port.Link)
	}
	if err != nil || !c.Groups {
		return cfg, err
	}
	plan, err := c.plan(c.Topology)
	cfg.Routes = plan.Routes
	return cfg, err
}

// balances reports whether a program balances at this switch.
func (d *daemon) balances(c Config) bool {
	return fabric.BalancesAt(d.file.Balance, c.Topology.Node(c.Self).Layer) || d.file.duty(c) != elephant.Nothing
}

// attachBalance has packets balanced, if a program does that, and otherwise removes what a
// crash has left. A switch that cannot balance forwards by plain routes, and says why: what
// a crash has left must not balance there either.
func (d *daemon) attachBalance(c Config) error {
	cfg, err := d.balancing(c)
	if err != nil {
		return err
	}
	names := portNames(cfg.Ports)
	if err := d.attachClassifier(c, names); err != nil {
		return err
	}
	if d.balances(c) {
		if d.balance, err = fabric.AttachBalance(cfg); err != nil {
			_, err2 := fabric.DetachBalance(names)
			d.plain = service.OneLine(errors.Join(err, err2).Error())
			d.log.Warnf(event.Limited, "%s: packets go by plain routes", d.plain)
		}
		return nil
	}
	n, err := fabric.DetachBalance(names)
	if n > 0 {
		d.log.Infof(event.Repaired, "removed the program that balanced before from %d ports", n)
	}
	if err != nil {
		d.log.Warnf(event.Limited, "note: what balanced before cannot be looked for: %v", err)
	}
	if (d.file.Balance == "ecmp" || fabric.BalancesByProgram(d.file.Balance)) && !d.file.Configure {
		if err := fabric.HashFiveTuple(); err != nil {
			d.plain = service.OneLine(err.Error())
			d.log.Warnf(event.Limited, "%s: packets go by plain routes", d.plain)
		}
	}
	return nil
}

// inheritBalance takes over what the program that this one was before has attached, or why it
// has not.
func (d *daemon) inheritBalance(c Config, descriptors, plain string) error {
	d.plain = plain
	if err := d.inheritClassifier(c, descriptors); err != nil {
		return err
	}
	if !d.balances(c) || plain != "" {
		return nil
	}
	cfg, err := d.balancing(c)
	if err != nil {
		return err
	}
	d.balance, err = fabric.InheritBalance(descriptors, cfg)
	return err
}

// endBalance leaves the switch without the programs.
func (d *daemon) endBalance() {
	d.endClassifier()
	if d.balance == nil {
		return
	}
	if err := d.balance.Detach(); err != nil {
		d.log.Warnf(event.Trouble, "what balances is left behind: %v", err)
	}
}

func (d *daemon) balanceStatus(s *Status) {
	s.BalanceError = d.plain
	d.classifierStatus(s)
	d.schedulerStatus(s)
	if d.balance == nil {
		return
	}
	stats, err := d.balance.Stats()
	s.Balance = &stats
	if err != nil {
		s.BalanceError = err.Error()
	}
}
