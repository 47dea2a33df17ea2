package daemon

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"weft/internal/capture/tap"
	"weft/internal/congestion"
	"weft/internal/event"
	"weft/internal/eventlog"
	"weft/internal/hostprog"
	"weft/internal/scheduling"
	"weft/internal/service"
	"weft/liveness"
	"weft/mesh"
	"weft/topology"
	"weft/topoupdate/bgp"
	"weft/topoupdate/bgp/learn"
)

// daemon is one run of weft host. One goroutine, that of serve, owns its state. It takes
// one event at a time (configuration, news of failures, changes of the kernel, time) and
// carries out each as a whole or not at all. It holds mu during an event, so a status shows
// the state before or after it.
type daemon struct {
	file     string
	log      *eventlog.Log
	loop     service.Loop
	started  time.Time
	time     func() time.Time // of day, which does not go back; nil: the machine's
	memory   int64            // that the control group allows, bytes; 0: no limit
	kernel   kernel
	inbox    inbox
	control  *congestion.Registration // nil: the kernel's own congestion controls alone
	disorder bool                     // datagrams are listed, and not put in order here
	mesh     *membership              // nil: none
	requests <-chan request           // of the program that it is embedded in; nil: weft host
	tap      tap.Tap                  // where who captures sees the dataplane's packets

	mu sync.Mutex
	state

	views  pathViews
	pinned pinnedProgram
}

// state is what a daemon's owner has to itself.
type state struct {
	config  *Config // in force
	settled settled // that mode auto is, as was logged
	learner learner // nil: the fabric is configured
	growth  bgp.Growth
	doubts  []string // about what switches tell, as were logged
	place   place
	joined  []mesh.Peer // by the mesh
	setup   hostSetup
	tun     string              // of setup's plan
	parts                       // nothing while weft is out of the way
	counted hostprog.SprayStats // by programs that are no more
	status  io.Closer
	metrics io.Closer // over TCP; nil before it is open
	reloads int
	repairs service.Repairs
	trouble trouble
	noted   *forwarding // connections that are forwarded; nil: none are noted
	supers  supers
	early   string // why super-segments are not cut late, as was logged
	pacer   pacer  // nil: none; for the whole run

	scheduler   *scheduling.Node // nil: none; for the whole run
	unscheduled string           // why there is none, as was logged

	paced   bool   // it is tried no more
	unpaced string // why there is none, as was logged
}

// parts are what carries packets at an uplink. What is nil is not in use.
type parts struct {
	receiver receiver
	spray    sprayer
	cuts     bool // spray was given CutForwarded
	sampler  sampler
	follower follower
	topology *topology.Topology // that packets go by
	changes  uint64             // of it
	carriage *liveness.Carriage // the same; nil: as at the beginning
	six      course
	heard    map[string]news // the latest by each encapsulation
	told     views           // what the switches have told last, if they have since the parts were made
	others   []hostprog.ForeignProgram
	unheard  string // why nothing that switches say is believed, as was logged
	diverted bool   // programs' packets are led into the TUN
	working  bool   // all is in place
}

// start brings everything up. What fails leaves the rest for stop.
func (d *daemon) start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.checkControl(d.config); err != nil {
		return err
	}
	if d.config.learns() {
		var err error
		if d.learner, err = d.kernel.learn(d.config); err != nil {
			return err
		}
	}
	switch err := d.bringUp(ctx); {
	case errors.Is(err, learn.ErrUnlearned):
		d.complain(time.Now(), err.Error())
	case err != nil:
		return err
	}
	if err := d.joinMesh(); err != nil {
		return err
	}
	return d.listen()
}

// bringUp puts all parts in place, in an order that never leads packets to a part that is
// missing.
func (d *daemon) bringUp(ctx context.Context) error {
	c := d.config
	if d.learner != nil {
		v, err := d.learner.fabric()
		if err != nil {
			return err
		}
		c.views, d.growth = v, bgp.Growth{}
	}
	d.settle(c)
	p, err := d.findPlace(ctx)
	if err != nil {
		return err
	}
	if p.no6 != "" {
		d.log.Warnf(event.Limited, "IPv6 packets go plain: %s", p.no6)
	}
	if c.joins() {
		if err := p.meet(d.joined); err != nil {
			return err
		}
	}
	plan, err := c.plan(p)
	if err != nil {
		return err
	}
	if c.needsGateway() { // or each part would wait for it
		if err := d.kernel.reach(p); err != nil {
			return err
		}
	}
	p.time, p.memory, p.short, p.log, p.tap = d.time, d.memory, d.supers.lost(), d.log, &d.tap
	if p.forwarded, err = d.noteForwarded(c, p); err != nil {
		return err
	}
	d.place, d.topology = p, c.fabric
	if c.receives() {
		if d.receiver, err = d.kernel.open(c, p, plan); err != nil {
			return err
		}
	}
	if d.setup != nil && d.tun != plan.TUN { // it begins or ends to restore the order
		if err := d.setup.Restore(); err != nil {
			return err
		}
		d.setup = nil
	}
	if d.tun = plan.TUN; d.setup == nil {
		if d.setup, err = d.kernel.setUp(plan); err == nil {
			if keys := d.setup.Unknown(); len(keys) > 0 {
				d.log.Warn(event.Limited, "settings of a later version of weft that crashed are left as they are, until that version runs again: "+strings.Join(keys, ", "))
			}
		}
	} else {
		_, err = d.setup.Repair(plan)
	}
	if err != nil {
		return err
	}
	for _, device := range p.strict {
		d.log.Infof(event.Configured, "rp_filter of %s is strict (1), which would drop what comes in by other ways: loose (2) until weft ends", device)
	}
	if !c.tunnels() {
		if d.spray, err = d.attach(c, c.fabric); err != nil {
			return err
		}
		if err := d.sample(c, c.fabric); err != nil {
			return err
		}
	}
	if d.receiver != nil {
		if err := d.receiver.start(plan); err != nil {
			return err
		}
		if r, ok := d.receiver.(*hostReceiver); ok && r.shut != nil {
			d.log.Warnf(event.Limited, "warning: nobody restores the order of IPv6: %v: a firewall that checks reverse paths must be loose (firewalld: IPv6_rpfilter=loose), and let UDP in from the fabric", r.shut)
		}
	}
	if err := d.follow(c, c.fabric); err != nil {
		return err
	}
	d.tellUplinks(c)
	d.hearAll()
	if err := d.goBy(c); err != nil {
		return err
	}
	if c.diverts() {
		if err := d.setup.Divert(); err != nil {
			return err
		}
		d.diverted = true
	}
	if d.spray != nil {
		if err := d.spray.Beat(); err != nil {
			return err
		}
	}
	d.pace(c)
	d.schedule(c)
	d.working = true
	d.tellSupers()
	d.tellLate()
	return nil
}

// findPlace finds out where the host is. A device that was made anew has no routes yet that
// show it. Then findPlace assumes the name and the switch of before.
func (d *daemon) findPlace(ctx context.Context) (place, error) {
	p, err := d.kernel.find(ctx, d.config)
	if err == nil || d.place.uplink.Name == "" {
		return p, err
	}
	again := d.place
	again.uplink.Index = 0
	if again, err2 := d.kernel.look(again); err2 == nil && again.uplink.Up && d.config.size(&again) == nil {
		return again, nil
	}
	return p, err
}

// attach attaches the program that encapsulates in place of the present one. Each packet
// passes one of the two.
func (d *daemon) attach(c *Config, t *topology.Topology) (sprayer, error) {
	o := c.spray(d.place, t, d.six.topology)
	s, err := d.kernel.spray(o)
	if err != nil {
		return nil, c.lines.Errorf("policy", "%w", err)
	}
	d.cuts = o.CutForwarded
	d.pinned.use(s)
	if c.unordered() {
		d.log.Warnf(event.Limited, "warning: policy %s without receivers that restore the order: TCP takes much of what arrives out of order for lost; run mode auto or gateway there, and set receivers_resequence: true here; or use drb", c.Policy)
	}
	return s, nil
}

// follow begins to follow what becomes known of failures.
func (d *daemon) follow(c *Config, t *topology.Topology) error {
	if c.tunnels() {
		return nil
	}
	f, err := d.kernel.follow(c, d.place, t, d.receiver, d.inbox.put)
	if err != nil {
		return err
	}
	d.follower = f
	return nil
}

// setTopology has later packets go by a topology.
func (d *daemon) setTopology(t *topology.Topology) (err error) {
	if d.spray != nil {
		err = d.spray.SetTopology(t)
	}
	if d.sampler != nil {
		d.sampler.SetTopology(t)
	}
	return errors.Join(err, d.setReceiverTopology(t))
}

// setReceiverTopology is setTopology but for the program at the uplink.
func (d *daemon) setReceiverTopology(t *topology.Topology) error {
	d.changes++
	if d.receiver != nil {
		if err := d.receiver.SetTopology(t); err != nil {
			return err
		}
	}
	d.topology = t
	return nil
}
