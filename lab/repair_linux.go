package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/topology"
)

// labRepair compares a lab that is up with what was built, and mends what differs.
type labRepair struct {
	builder
	failed  map[topology.LinkID]FailureMode
	handles map[topology.NodeID]*netlink.Handle
	fresh   map[topology.NodeID]bool // namespaces that were made anew
	did     []string
}

// repairLab mends a lab, and says what it has mended, a sentence each. What was made
// to fail stays so.
func repairLab(ctx context.Context, cfg Config, state *labState) (did []string, err error) {
	r := labRepair{builder: builder{cfg: cfg, notes: state.Notes},
		handles: make(map[topology.NodeID]*netlink.Handle), fresh: make(map[topology.NodeID]bool)}
	defer func() {
		for _, h := range r.handles {
			h.Close()
		}
	}()
	if r.failed, err = state.Failures.modes(cfg); err != nil {
		return nil, err
	}
	if err := kernel.PrepareNetnsDir(); err != nil {
		return nil, err
	}
	steps := []func(topology.Node) error{r.namespace, r.links, r.configure}
	if cfg.Graph != nil {
		steps = append(steps, r.startRouting)
	}
	r.total = len(steps) * cfg.numNodes()
	for _, step := range steps {
		for n := range cfg.nodes() {
			if err := ctx.Err(); err != nil {
				return r.did, err
			}
			if err := step(n); err != nil {
				return r.did, fmt.Errorf("repair lab %s: %s: %w; weft lab down --name %s clears it away", cfg.Name, n.Name, err, cfg.Name)
			}
			r.progress()
		}
	}
	if err := r.fail(); err != nil {
		return r.did, err
	}
	before := len(r.notes)
	err = r.awaitRoutes(ctx, r.failed)
	for _, what := range r.notes[before:] {
		r.say("not mended: %s", what)
	}
	return r.did, err
}

func (r *labRepair) say(format string, args ...any) {
	r.did = append(r.did, fmt.Sprintf(format, args...))
}

// namespace makes a node's namespace where it is missing.
func (r *labRepair) namespace(n topology.Node) error {
	name := r.cfg.namespace(n.Name)
	ns, err := kernel.OpenNamespace(name)
	if err == nil {
		r.handles[n.ID], err = openHandle(ns)
		ns.Close()
		if err == nil {
			return nil
		}
	}
	if err := kernel.DeleteNamespace(name); err != nil { // a name without a namespace
		return err
	}
	if err := r.create(n); err != nil {
		return err
	}
	if ns, err = kernel.OpenNamespace(name); err != nil {
		return err
	}
	defer ns.Close()
	r.fresh[n.ID] = true
	r.say("%s: made its namespace again", n.Name)
	r.handles[n.ID], err = openHandle(ns)
	return err
}

// links makes those of a node's links to the layer above that are not whole.
func (r *labRepair) links(n topology.Node) error {
	t := r.cfg.plant()
	for _, port := range r.cfg.ports(n.ID) {
		if !port.Up {
			continue
		}
		lower, upper := r.port(n.ID, port.Index), r.port(port.Peer, port.PeerPort)
		if lower != nil && upper != nil && lower.Index == firstIndex+int(port.Link) &&
			lower.ParentIndex == upper.Index && upper.ParentIndex == lower.Index {
			continue
		}
		byIndex, err := r.handles[n.ID].LinkByIndex(firstIndex + int(port.Link)) // it may have got another name
		if err == nil {
			r.handles[n.ID].LinkDel(byIndex)
		}
		for _, end := range []struct {
			id   topology.NodeID
			port int
		}{{n.ID, port.Index}, {port.Peer, port.PeerPort}} {
			if left, err := r.handles[end.id].LinkByName(r.cfg.portName(end.id, end.port)); err == nil {
				if err := r.handles[end.id].LinkDel(left); err != nil {
					return kernel.Explain(fmt.Errorf("remove what is left of link %s: %w", t.LinkName(port.Link), err))
				}
			}
		}
		if err := kernel.InNamespace(r.cfg.namespace(n.Name), func() error { return r.wireLink(n, port) }); err != nil {
			return err
		}
		r.say("%s: made the link again", t.LinkName(port.Link))
	}
	return nil
}

// port is nil where a port has no device.
func (r *labRepair) port(id topology.NodeID, port int) *netlink.LinkAttrs {
	link, err := r.handles[id].LinkByName(r.cfg.portName(id, port))
	if err != nil {
		return nil
	}
	return link.Attrs()
}

// configure is builder.configure that tells what was not so. Routes that an agent
// keeps are left to it.
func (r *labRepair) configure(n topology.Node) error {
	plan, err := r.cfg.plan(n.ID)
	if err != nil {
		return err
	}
	down := make(map[string]bool)
	for i, port := range r.cfg.ports(n.ID) {
		if r.failed[port.Link] == FailLoud && r.cfg.plant().Link(port.Link).B == n.ID {
			down[plan.Ports[i].Name] = true
		}
	}
	return kernel.InNamespace(r.cfg.namespace(n.Name), func() error {
		h := r.handles[n.ID]
		if fabric.BalancesAt(r.cfg.Balance, n.Layer) && n.Layer != topology.LayerHost && !r.fresh[n.ID] {
			plan = plan.Balanced()
		}
		report, err := fabric.Mend(plan, down, AgentRuns())
		if err != nil {
			return err
		}
		for i, port := range r.cfg.ports(n.ID) {
			did, err := r.configurePort(h, n, port, plan.Ports[i].Name)
			for _, what := range did {
				report.Did = append(report.Did, fmt.Sprintf("%s of %s", what, plan.Ports[i].Name))
			}
			if err != nil {
				return fmt.Errorf("port %s: %w", plan.Ports[i].Name, err)
			}
		}
		if n.Layer == topology.LayerHost {
			_, err = report.SetSysctls(hostSysctls)
		} else {
			err = errors.Join(r.rebalance(h, n, plan, &report), r.remeter(h, n, plan, &report))
		}
		if !r.fresh[n.ID] { // else all was missing
			for _, what := range report.Did {
				r.say("%s: %s", n.Name, what)
			}
		}
		return err
	})
}

// fail makes links fail again that are to and do not.
func (r *labRepair) fail() error {
	l := newLab(r.cfg, &labState{})
	defer l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(r.failed)) {
		mode := r.failed[id]
		k := r.cfg.plant().Link(id)
		fails := true
		for _, end := range []topology.NodeID{k.A, k.B} {
			e, err := l.end(id, end)
			if err != nil {
				return err
			}
			switch {
			case mode == FailLoud:
				fails = fails && (end == k.A || e.link.Attrs().Flags&net.FlagUp == 0)
			default:
				err = l.Do(end, func() error {
					at, err := kernel.SilentFilter.Program(e.node.Handle, e.link)
					fails = fails && at != 0
					return err
				})
			}
			if err != nil {
				return err
			}
		}
		if fails {
			continue
		}
		do, err := l.prepare(transition{link: id, to: mode})
		if err == nil {
			err = do()
		}
		if err != nil {
			return fmt.Errorf("link %s: %w", r.cfg.plant().LinkName(id), err)
		}
		r.say("%s: made it fail again (%s)", r.cfg.plant().LinkName(id), mode)
	}
	return nil
}

// AgentRuns reports whether the calling thread's network namespace has a socket for
// topology updates. On a switch it is an agent's. The table is that of proc_pid_net(5): the
// second column is address:port in hexadecimal digits.
func AgentRuns() bool {
	table, err := os.ReadFile("/proc/thread-self/net/udp")
	if err != nil {
		return false
	}
	port := fmt.Sprintf(":%04X", controlPort)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasSuffix(f[1], port) {
			return true
		}
	}
	return false
}
