package schedulerlab

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"weft/bench/child"
	"weft/hedera"
	"weft/internal/kernel"
	"weft/lab"
	"weft/topology"
)

// Config is what is to run.
type Config struct {
	Lab      *lab.Lab
	Topology string // its specification
	LinkMbit float64
	Rule     string        // of weft scheduler
	Every    time.Duration // between reports and between rounds
	Lifetime time.Duration // of placements; more if weft scheduler demands it
	Switches bool          // weft switch runs at switches below the top, and has plain hosts' flows scheduled

	Argv, Env []string // weft
}

// Scheduled is a scheduler and its switches.
type Scheduled struct {
	c      Config
	dir    *child.Dir
	key    string                    // in base64
	net    string                    // namespace of the control network
	agents []topology.Node           // switches with weft switch
	run    map[string]*child.Process // by name
	given  <-chan struct{}           // closed when the caller has given up
}

// processLimit is how long all may take until they work.
const processLimit = 60 * time.Second

// settles is how long the scheduler may take until it has forgotten a flow that has ended: its
// last report comes within a period, counts for Lifetime, and the next round takes it away.
func (c Config) settles() time.Duration { return processLimit + c.Lifetime + 3*c.Every }

// scheduler is the scheduler's name among the processes.
const scheduler = "scheduler"

// Start starts all and waits until the scheduler leads and each switch has heard of it. On an
// error nothing runs.
func Start(ctx context.Context, c Config) (s *Scheduled, err error) {
	s = &Scheduled{c: c, run: make(map[string]*child.Process), given: ctx.Done()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.dir, err = child.TempDir("weft-scheduler-"); err != nil {
		return s, err
	}
	secret := make([]byte, 32)
	rand.Read(secret) // it never fails
	s.key = base64.StdEncoding.EncodeToString(secret)
	fabric, err := hedera.NewClos(c.Lab.Config.Topology)
	if err != nil {
		return s, err
	}
	var nodes []topology.Node // that speak with the scheduler
	for n := range c.Lab.Config.Topology.Nodes() {
		if fabric.Known(n.Addr) && c.Switches == (n.Layer != topology.LayerHost) {
			nodes = append(nodes, n)
		}
	}
	if c.Switches {
		s.agents = nodes
	}
	if s.net, err = makeNetwork(c.Lab, nodes); err != nil {
		return s, err
	}
	if err = s.startEtcd(ctx); err != nil {
		return s, err
	}
	if err = s.StartScheduler(ctx); err != nil {
		return s, err
	}
	return s, s.startAgents(ctx)
}

// Keys is the entry of a list of keys in a node's configuration.
func (s *Scheduled) Keys() string { return fmt.Sprintf("[{id: 1, key: %q}]", s.key) }

// Section is a node's section scheduler.
func (s *Scheduled) Section() string {
	return fmt.Sprintf("scheduler: {servers: [%q], every: %v, link_mbit: %g}", schedulerAt, s.c.Every, s.c.LinkMbit)
}

// Spec is the topology with the rates of its links, for nodes, too.
func (s *Scheduled) Spec() string {
	spec := fmt.Sprintf("%s,host-rate=%g,fabric-rate=%g", s.c.Topology, s.c.LinkMbit, s.c.LinkMbit)
	if t := s.c.Lab.Config.Topology; len(t.Paths(0, topology.NodeID(t.NumHosts()-1)).Bases) > 1 {
		spec += fmt.Sprintf(",core-rate=%g", s.c.LinkMbit)
	}
	return spec
}

// StartScheduler starts the scheduler, again after Kill, and waits until it leads.
func (s *Scheduled) StartScheduler(ctx context.Context) error {
	// As long as placements let it be, as a busy machine may keep etcd waiting.
	ttl := min(max(s.c.Lifetime-3*s.c.Every, time.Second), 3*time.Second)
	text := fmt.Sprintf("topology: %q\nlisten: %v\netcd: {endpoints: [%q], ttl: %v}\nrule: %s\nperiod: %v\nlifetime: %v\nkeys: %s\nstatus: %s\n",
		s.Spec(), schedulerAt, etcdClients, ttl, s.c.Rule, s.c.Every, max(s.c.Lifetime, ttl+3*s.c.Every), s.Keys(), s.socket(scheduler))
	if err := s.startWeft(scheduler, s.net, scheduler, text); err != nil {
		return err
	}
	return s.await(ctx, scheduler, processLimit, func() string {
		if st, err := s.Status(ctx); err != nil || !st.Leads {
			return "it does not lead"
		}
		return ""
	})
}

// Kill kills the scheduler.
func (s *Scheduled) Kill() error { return s.end(scheduler) }

func (s *Scheduled) startAgents(ctx context.Context) error {
	for _, n := range s.agents {
		text := fmt.Sprintf("topology: %q\nnode: %s\nconfigure: false\nroutes: false\nhello: 1s\nbalance: ecmp\nuser: root\nkeys: %s\n%s\nstatus: %s\n",
			s.Spec(), n.Name, s.Keys(), s.Section(), s.socket(n.Name))
		if err := s.startWeft(n.Name, s.c.Lab.Namespace(n.ID), "switch", text); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	for _, n := range s.agents {
		err := s.await(ctx, n.Name, processLimit, func() string {
			a, err := s.agent(ctx, n.Name)
			switch {
			case err != nil:
				return err.Error()
			case a.BalanceError != "":
				return a.BalanceError
			case a.Scheduler == nil || a.Scheduler.Leader == "":
				return "it has not heard of the scheduler"
			}
			return ""
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Scheduled) socket(name string) string { return filepath.Join(s.dir.Path, name+".sock") }

// Close ends all and takes the control network away. What had ended before is an error.
func (s *Scheduled) Close() error {
	var errs []error
	for name := range s.run {
		if name != etcd {
			errs = append(errs, s.end(name))
		}
	}
	errs = append(errs, s.end(etcd)) // the last, as the scheduler needs it
	if s.net != "" {
		errs = append(errs, kernel.DeleteNamespace(s.net))
	}
	if s.dir != nil {
		errs = append(errs, s.dir.Remove())
	}
	return errors.Join(errs...)
}
