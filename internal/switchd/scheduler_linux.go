package switchd

import (
	"time"

	"weft/fabric"
	"weft/hedera/wire"
	"weft/internal/elephant"
	"weft/internal/event"
	"weft/internal/scheduling"
	"weft/topology"
)

// schedule begins to report elephants, and to pin them, if that is wanted.
func (d *daemon) schedule(c Config) error {
	if d.balance == nil || d.file.duty(c) == elephant.Nothing {
		if why := d.file.unscheduled(c, d.plain); why != "" {
			d.log.Infof(event.Configured, "scheduler.servers has no effect here: %s", why)
		}
		return nil
	}
	whole, self := c.Topology.Whole(), c.Self
	plan, err := c.plan(whole)
	if err != nil {
		return err
	}
	duty := d.file.duty(c)
	d.scheduler, err = scheduling.Start(scheduling.Config{
		Client: wire.ClientConfig{Fabric: whole.Fingerprint(), Address: whole.Node(self).Addr,
			Servers: d.file.Scheduler.Servers, Keys: d.file.keys(time.Now())},
		Detector: d.file.Scheduler.Detector(whole, func(host topology.NodeID) bool { return whole.EdgeOf(host) == self }),
		Every:    d.file.Scheduler.Every,
		Log:      d.log,
		Now:      scheduling.Monotonic,
		Counts: func(into []elephant.Count) ([]elephant.Count, error) {
			if duty != elephant.PinAndCount { // its flows are reported below it
				return into[:0], nil
			}
			return d.balance.Flows(into)
		},
		SetPins: func(pins []elephant.Pin) error {
			list := make([]fabric.PortPin, 0, len(pins))
			for _, p := range pins {
				if port, err := portFor(whole, self, p); err == nil { // Known has seen to it
					list = append(list, fabric.PortPin{Flow: p.Flow, Port: plan.Ports[port].Name, Until: uint64(p.Until)})
				}
			}
			return d.balance.SetPins(list)
		},
		Known: func(p elephant.Pin) error {
			_, err := portFor(whole, self, p)
			return err
		},
	})
	if err != nil {
		return d.file.lines.Errorf("scheduler.servers", "%w", err)
	}
	if duty == elephant.PinFlows {
		d.log.Infof(event.Configured, "elephants that edge switches report are pinned as the scheduler says")
		return nil
	}
	d.log.Infof(event.Configured, "flows above %g of a host's link are reported every %v", d.file.Scheduler.Share, d.file.Scheduler.Every)
	return nil
}

// signReports has reports signed with the keys in force.
func (d *daemon) signReports(f *File) {
	if d.scheduler != nil {
		_ = d.scheduler.SetKeys(f.keys(d.origin.Add(d.scheduler.Started().Sub(d.start)))) // those that the agent has taken
	}
}

// endScheduling ends what schedule has begun, before the program goes.
func (d *daemon) endScheduling() {
	if d.scheduler == nil {
		return
	}
	if err := d.scheduler.Close(); err != nil {
		d.log.Warnf(event.Limited, "warning: pins of elephants: %v", err)
	}
}

func (d *daemon) schedulerStatus(s *Status) {
	if d.scheduler == nil {
		return
	}
	program, err := d.balance.Elephants()
	s.Scheduler = d.scheduler.Status(program)
	if err != nil && s.Scheduler.Error == "" {
		s.Scheduler.Error = err.Error()
	}
}
