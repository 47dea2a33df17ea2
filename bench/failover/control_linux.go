package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"weft/bench/testbed"
	"weft/fabric"
	"weft/internal/switchd"
	"weft/lab"
	"weft/stack"
	"weft/topology"
	"weft/topoupdate/listen"
)

// control is the switches' agents and the hosts' listeners. It is safe for
// concurrent use.
type control struct {
	lab       *lab.Lab
	hello     time.Duration
	trace     func(traceEvent)   // of what agents and hosts do; nil: none
	listeners []*listen.Listener // by host number

	process *agentProcess // that has the agents; nil if they are here

	mu       sync.Mutex
	switches []topology.NodeID
	agents   map[topology.NodeID]*switchd.Agent
}

func newControl(lab *lab.Lab, hello time.Duration) *control {
	return &control{lab: lab, hello: hello, agents: make(map[topology.NodeID]*switchd.Agent)}
}

// startControl starts an agent at every switch and a listener at every host,
// which tells the host's stack.
func startControl(o *Options, lab *lab.Lab, stacks []*stack.Host, trace func(traceEvent)) (c *control, err error) {
	c = newControl(lab, o.Hello)
	c.trace = trace
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	for n := range o.Topology.Nodes() {
		switch {
		case n.Layer == topology.LayerHost:
			err = c.listen(o, n, stacks[n.ID])
		case len(o.AgentProcess) == 0:
			err = c.startAgent(n.ID)
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	if len(o.AgentProcess) > 0 {
		c.process, err = startAgentProcess(o.AgentProcess, lab.Config.Name, o.Hello, trace)
	}
	return c, err
}

func (c *control) listen(o *Options, n topology.Node, host *stack.Host) error {
	return c.lab.Do(n.ID, func() error {
		l, err := listen.Open(listen.Config{
			Interface: testbed.Uplink, Topology: o.Topology, Address: host.Address(),
			Deliver: func(t *topology.Topology) {
				began := time.Now()
				// It fails for a topology without the host only.
				_ = host.SetTopology(t)
				if c.trace != nil {
					c.trace(traceEvent{At: began, Took: time.Since(began), Node: n.Name, What: traceDelivered, Of: fmt.Sprintf("%d links down", len(t.Down()))})
				}
			},
		})
		if err == nil {
			c.listeners = append(c.listeners, l)
		}
		return err
	})
}

// startAgent starts that of a switch, with c.mu held or before c is shared.
func (c *control) startAgent(id topology.NodeID) error {
	return c.lab.Do(id, func() error {
		config := switchd.Config{Topology: c.lab.Config.Topology, Self: id, Hello: c.hello, Routes: true}
		if c.trace != nil {
			config.Carrier = func(port int, up bool) {
				c.trace(traceEvent{At: time.Now(), Node: c.lab.Config.Topology.Node(id).Name, What: traceCarrier, Of: fmt.Sprintf("p%d %s", port, upOrDown(up))})
			}
		}
		a, err := switchd.Start(config)
		if err == nil {
			c.agents[id] = a
			if !slices.Contains(c.switches, id) {
				c.switches = append(c.switches, id)
			}
		}
		return err
	})
}

// restart ends an agent, the n-th modulo their number, as a crash would if kill
// is set, and starts it again after a pause.
func (c *control) restart(n int, kill bool, pause time.Duration) (name string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.switches[n%len(c.switches)]
	name = c.lab.Config.Topology.Node(id).Name
	end := c.agents[id].Close
	if kill {
		end = c.agents[id].Kill
	}
	if err := end(); err != nil {
		return name, err
	}
	time.Sleep(pause)
	return name, c.startAgent(id)
}

// failed returns why an agent has ended by itself, nil if none has.
func (c *control) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, a := range c.agents {
		if err := a.Err(); err != nil {
			return fmt.Errorf("agent of %s: %w", c.lab.Config.Topology.Node(id).Name, err)
		}
	}
	return nil
}

// agreeLimit is how long agents that have just begun may take to find out that
// nothing is down.
const agreeLimit = 20 * time.Second

// await waits until everybody takes everything for up.
func (c *control) await(ctx context.Context) error {
	for start := time.Now(); ; {
		wrong := c.wrong(nil)
		if len(wrong) == 0 {
			return nil
		}
		if time.Since(start) > agreeLimit {
			return fmt.Errorf("after %v the agents do not agree that all is up: %s, and %d more; if the processors are busy, raise --hello",
				agreeLimit, wrong[0], len(wrong)-1)
		}
		if err := sleep(ctx, convergePoll); err != nil {
			return err
		}
	}
}

// wrong says who does not know the truth: listeners that of all links between
// switches, agents that of their own.
func (c *control) wrong(down map[topology.LinkID]bool) (who []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.lab.Config.Topology
	check := func(name string, view *topology.Topology, links []topology.LinkID) {
		for _, l := range links {
			if view.Live(l) == down[l] {
				who = append(who, fmt.Sprintf("%s takes %s for %s", name, t.LinkName(l), upOrDown(view.Live(l))))
			}
		}
	}
	var all []topology.LinkID
	for l := range t.Links() {
		if t.Node(l.A).Layer != topology.LayerHost {
			all = append(all, l.ID)
		}
	}
	for i, l := range c.listeners {
		check(t.Node(topology.NodeID(i)).Name, l.Topology(), all)
	}
	for _, id := range c.switches {
		var own []topology.LinkID
		for _, p := range t.Ports(id) {
			own = append(own, p.Link)
		}
		check(t.Node(id).Name, c.agents[id].Topology(), own)
	}
	return who
}

func upOrDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

// close ends all, and gives the switches the routes back that agents, whose
// routes outlive them, may have taken away.
func (c *control) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, l := range c.listeners {
		errs = append(errs, l.Close())
	}
	for _, a := range c.agents {
		errs = append(errs, a.Close())
	}
	if c.process != nil {
		errs = append(errs, c.process.close())
	}
	for n := range c.lab.Config.Topology.Nodes() {
		if n.Layer != topology.LayerHost {
			errs = append(errs, c.restoreRoutes(n.ID))
		}
	}
	return errors.Join(errs...)
}

func (c *control) restoreRoutes(id topology.NodeID) error {
	plan, err := fabric.Plan(c.lab.Config.Topology, id, fabric.Options{})
	if err != nil {
		return err
	}
	return c.lab.Do(id, func() error {
		_, err := fabric.Apply(plan)
		return err
	})
}
