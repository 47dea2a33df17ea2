package daemon

import (
	"sync"
	"time"

	"weft/hedera/wire"
	"weft/internal/elephant"
	"weft/internal/event"
	"weft/internal/hostprog"
	"weft/internal/scheduling"
	"weft/topology"
)

// pinner is *hostprog.Spray.
type pinner interface {
	FlowCounts([]elephant.Count) ([]elephant.Count, error)
	SetPins([]hostprog.PathPin) error
	Elephants() (elephant.ProgramStats, error)
}

// pinnedProgram is the program that a scheduling.Node counts and pins by. It has a lock of its
// own: the owner holds mu for as long as an event takes, and waits for the Node when it ends.
type pinnedProgram struct {
	mu   sync.Mutex
	at   pinner // nil while there is none
	pins []hostprog.PathPin
}

// use has another program in the place of the present one, with the same pins.
func (p *pinnedProgram) use(s sprayer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, _ = s.(pinner)
	if p.at != nil && len(p.pins) > 0 {
		_ = p.at.SetPins(p.pins) // the next report says why
	}
}

func (p *pinnedProgram) counts(into []elephant.Count) ([]elephant.Count, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil {
		return into[:0], nil
	}
	return p.at.FlowCounts(into)
}

func (p *pinnedProgram) set(pins []elephant.Pin) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pins = make([]hostprog.PathPin, len(pins))
	for i, pin := range pins {
		p.pins[i] = hostprog.PathPin{Flow: pin.Flow, Path: pin.Path, Until: uint64(pin.Until)}
	}
	if p.at == nil {
		return nil
	}
	return p.at.SetPins(p.pins)
}

func (p *pinnedProgram) stats() (s elephant.ProgramStats, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at != nil {
		s, err = p.at.Elephants()
	}
	return s, err
}

// schedule begins to report elephants, and to pin them, for the whole run, if that is wanted.
// Without it the host works.
func (d *daemon) schedule(c *Config) {
	if !c.Scheduler.On() || d.scheduler != nil {
		return
	}
	if err := d.startScheduling(c); err != "" && err != d.unscheduled {
		d.unscheduled = err
		d.log.Warnf(event.Limited, "elephants are not reported to schedulers: %s", err)
	}
}

func (d *daemon) startScheduling(c *Config) (why string) {
	t := c.fabric
	switch {
	case c.duty() == elephant.Nothing:
		return "in mode " + c.modeText() + " not every packet passes the program that counts; use mode: offload"
	case !t.Computed():
		return "schedulers know fabrics of a specification alone, and this one is data"
	}
	t = t.Whole()
	self, _ := t.ByAddr(d.place.address)
	n, err := scheduling.Start(scheduling.Config{
		Client:   wire.ClientConfig{Fabric: t.Fingerprint(), Address: d.place.address, Servers: c.Scheduler.Servers, Keys: c.Failures.keys(time.Now())},
		Detector: c.Scheduler.Detector(t, func(host topology.NodeID) bool { return host == self }),
		Every:    c.Scheduler.Every,
		Log:      d.log,
		Now:      scheduling.Monotonic,
		Counts:   d.pinned.counts,
		SetPins:  d.pinned.set,
		Known:    func(p elephant.Pin) error { return knownPath(t, self, p) },
	})
	if err != nil {
		return err.Error()
	}
	d.scheduler = n
	d.log.Infof(event.Configured, "flows above %g of the link are reported every %v", c.Scheduler.Share, c.Scheduler.Every)
	return ""
}

// reportByKeys has reports signed with the keys in force.
func (d *daemon) reportByKeys() {
	if d.scheduler != nil {
		_ = d.scheduler.SetKeys(d.config.Failures.keys(d.scheduler.Started())) // validate has seen to them
	}
}

func (d *daemon) schedulerStatus() any {
	if d.scheduler == nil {
		return nil
	}
	program, err := d.pinned.stats()
	s := d.scheduler.Status(program)
	if err != nil && s.Error == "" {
		s.Error = err.Error()
	}
	return s
}
