package switchd

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"weft/topology"
	"weft/topoupdate"
	"weft/topoupdate/wire"
)

// Agent is the running agent of a switch. Its methods are safe for concurrent
// use.
type Agent struct {
	config  Config
	names   []string // of the ports
	ports   *wire.Ports
	repair  *repair // nil if there is nothing to keep
	started time.Time
	ended   chan struct{}

	closing sync.Once

	// mu is never held while a port or a route is waited for. The loop's goroutine
	// takes it before and after the ports' own; all others hold only one of both.
	mu         sync.Mutex
	machine    *topoupdate.Agent
	shown      *topology.Topology // the snapshot that was passed on last
	changes    uint64
	neighbours []topoupdate.Neighbour // as they were told of last
	reports    uint64                 // the machine's count of changed ports then
	due        time.Duration          // when the loop is to come round at the latest
	left       bool                   // goodbye was said: the protocol is at its end
	err        error                  // why it has ended
}

// Start starts an agent in the network namespace of the calling thread, where it stays. A
// port without a device is down. Start needs CAP_NET_ADMIN for the routes, and CAP_NET_RAW
// for a device that is made anew later.
func Start(c Config) (*Agent, error) {
	a, err := start(c)
	if err != nil {
		return nil, fmt.Errorf("switch agent: %w", err)
	}
	go a.run()
	return a, nil
}

func start(c Config) (a *Agent, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	a = &Agent{config: c, started: time.Now(), ended: make(chan struct{}), shown: c.Topology}
	if a.machine, err = topoupdate.NewAgent(c.agent(a.started)); err != nil {
		return nil, err
	}
	plan, err := c.plan(c.Topology)
	if err != nil {
		return nil, err
	}
	for _, p := range plan.Ports {
		a.names = append(a.names, p.Name)
	}
	if a.ports, err = wire.Open(wire.Config{Interfaces: a.names, CarrierEvery: c.carrierEvery()}); err != nil {
		return nil, err
	}
	missing := a.ports.Missing()
	if len(missing) == len(a.names) {
		a.ports.Close()
		return nil, fmt.Errorf("none of the ports %s to %s of %s is in this network namespace; set the port format to what they are called", a.names[0], a.names[len(a.names)-1], plan.Node)
	}
	if c.Routes || c.Leaf || c.fixed || len(c.owned) > 0 {
		if a.repair, err = startRepair(c); err != nil {
			a.ports.Close()
			return nil, err
		}
	}
	return a, nil
}

// Topology returns the newest snapshot.
func (a *Agent) Topology() *topology.Topology {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.machine.Topology()
}

// SetKeys replaces the keys, for instance to begin a roll-over. The From of a key counts
// from Start.
func (a *Agent) SetKeys(k topoupdate.Keys) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.machine.SetKeys(k)
}

// Done is closed when the agent has ended, by itself or by Close.
func (a *Agent) Done() <-chan struct{} { return a.ended }

// Err returns why the agent has ended by itself; nil after Close.
func (a *Agent) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Close says goodbye to the neighbours and ends the agent. The neighbours then judge the
// links by their carrier. The routes stay as they are. Close may be called more than once.
func (a *Agent) Close() error { return a.end(true) }

// Kill ends the agent without a goodbye, as a crash would: its neighbours take the links
// for dead.
func (a *Agent) Kill() error { return a.end(false) }

func (a *Agent) end(orderly bool) (err error) {
	a.closing.Do(func() {
		if orderly {
			a.leave()
		}
		err = a.ports.Close()
		<-a.ended
		if a.repair != nil {
			a.repair.close()
		}
	})
	return err
}

// leave says goodbye. Sending waits until mu is free again: the loop's goroutine
// takes it while it has the ports.
func (a *Agent) leave() {
	type goodbye struct {
		port    int
		message []byte
	}
	var all []goodbye
	a.mu.Lock()
	a.left = true
	a.machine.Leave(a.now())
	a.machine.Send(func(port int, message []byte) { all = append(all, goodbye{port, bytes.Clone(message)}) })
	a.mu.Unlock()
	for _, g := range all {
		a.ports.Send(g.port, g.message)
	}
}

func (a *Agent) now() time.Duration { return time.Since(a.started) }
