package testbed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"weft/bench/child"
	"weft/lab"
	"weft/stack"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// graphLab is a lab of a graph, whose switches run FRR. Where weft spreads what the kernel's TCP
// sends, a weft host runs at each host, and reads the graph from a file. The other rows are
// embedded Hosts.
type graphLab struct {
	config    Config
	lab       *lab.Lab
	dir       *child.Dir
	argv, env []string // weft
}

// InGraph builds a lab of c.Graph that lives until Close; it needs root and FRR. argv is weft, with
// env, for the rows of weft host. progress, if not nil, is called at each step of building.
func InGraph(ctx context.Context, name string, c Config, argv, env []string, progress func(done, total int)) (Testbed, error) {
	for h := range graph.NodeID(c.Graph.NumHosts()) {
		if n := c.Graph.Node(h); !n.IPv4().IsValid() {
			return nil, fmt.Errorf("host %s has no IPv4 address: give it one under addresses", n.Name)
		}
	}
	l, err := lab.Hold(ctx, lab.Config{Name: name, Graph: c.Graph, RateMbit: c.RateMbit, Progress: progress})
	if err != nil {
		return nil, err
	}
	t := &graphLab{config: c, lab: l, argv: argv, env: env}
	t.config.Graph = l.Config.Graph // whose ports have names
	if t.dir, err = child.TempDir("weft-graph-"); err == nil {
		err = os.WriteFile(t.file(), t.config.Graph.Text(), 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *graphLab) file() string { return filepath.Join(t.dir.Path, "graph.yaml") }

func (t *graphLab) Kind() string { return "in network namespaces, switches by FRR" }

func (t *graphLab) Supports(r Row) error {
	if r.Kernel {
		r.Policy = "" // of weft host, which says itself what it lacks
		return (&namespaces{config: t.config}).Supports(r)
	}
	for h := range graph.NodeID(t.config.Graph.NumHosts()) {
		a, err := embeddedAddress(t.config.Graph, h)
		if err != nil {
			return err
		}
		if _, err := topology.FromGraph(t.config.Graph, a); err != nil {
			return err
		}
	}
	return nil
}

func (t *graphLab) Close() (err error) {
	if t.dir != nil {
		err = t.dir.Remove()
	}
	return errors.Join(t.lab.Close(), err)
}

func (t *graphLab) Start(ctx context.Context, row Row) (*Session, error) {
	if row.Kernel {
		return t.startDaemons(ctx, row)
	}
	return t.startEmbedded(ctx, row)
}

// probes are how many each host may send a second: they share this machine.
func (t *graphLab) probes() int { return max(2000/t.config.Graph.NumHosts(), 50) }

// startDaemons runs weft host at all hosts if the row has a policy.
func (t *graphLab) startDaemons(ctx context.Context, row Row) (*Session, error) {
	var hosts []DaemonHost
	for h := range graph.NodeID(t.config.Graph.NumHosts()) {
		n := t.config.Graph.Node(h)
		hosts = append(hosts, DaemonHost{ID: topology.NodeID(h), Name: n.Name, Address: n.IPv4(), Config: t.hostConfig(row)})
	}
	if row.MPTCP {
		if err := t.lab.EnableMPTCP(cmp.Or(row.Subflows, lab.MPTCPSubflows)); err != nil {
			return nil, err
		}
	}
	control := cmp.Or(row.Congestion, congestionControl)
	end, err := haveCongestion(control)
	if err != nil {
		return nil, err
	}
	d, err := StartDaemons(ctx, t.lab, hosts, t.argv, t.env)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	s, err := kernelSession(t.lab, hosts, kernelHost{mptcp: row.MPTCP, congestion: control}, t.links)
	if err != nil {
		return nil, errors.Join(err, d.Close(), end())
	}
	s.close = func() error { return errors.Join(d.Close(), end()) }
	counters := s.counters
	s.counters = func() (Counters, error) {
		c, err := counters()
		if err == nil && row.MPTCP {
			c.Subflows = t.lab.Subflows()
		}
		if err == nil && row.Resequences() {
			err = d.countOrder(&c)
		}
		return c, err
	}
	return s, nil
}

// hostConfig is the configuration of weft host in a row; "" if none runs.
func (t *graphLab) hostConfig(row Row) string {
	if row.Policy == "" {
		return ""
	}
	mode := "offload"
	switch {
	case row.Gateway:
		mode = "gateway"
	case row.Shipped:
		mode = "auto"
	}
	c := &t.config
	text := fmt.Sprintf("mode: %s\npolicy: %s\nuser: root\ntopology: %s\nfailures: {budget: %d}\n", mode, row.Policy, t.file(), t.probes())
	text += fmt.Sprintf("resequencer: {discipline: %v, hold: %v, min_hold: %v}\n", c.Resequencer.Discipline, c.Resequencer.Hold, c.Resequencer.MinHold)
	if c.Policy.FlowcellBytes > 0 {
		text += fmt.Sprintf("flowcell_bytes: %d\n", c.Policy.FlowcellBytes)
	}
	return text
}

// countOrder adds what gateways have put in order.
func (d *Daemons) countOrder(c *Counters) error {
	for _, h := range d.Hosts {
		out, err := d.Status(h)
		if err != nil {
			return err
		}
		var s struct {
			Dataplane struct {
				Resequencer struct {
					Before int64 `json:"arrived_out_of_order"`
					After  int64 `json:"delivered_out_of_order"`
				} `json:"resequencer"`
			} `json:"dataplane"`
		}
		if err := json.Unmarshal(out, &s); err != nil {
			return fmt.Errorf("%s: weft status --json: %w", h.Name, err)
		}
		c.OutOfOrderBefore += s.Dataplane.Resequencer.Before
		c.OutOfOrderAfter += s.Dataplane.Resequencer.After
	}
	return nil
}

func (t *graphLab) startEmbedded(ctx context.Context, row Row) (*Session, error) {
	var list []EmbeddedHost
	for h := range graph.NodeID(t.config.Graph.NumHosts()) {
		n := t.config.Graph.Node(h)
		e := EmbeddedHost{ID: topology.NodeID(h), Name: n.Name}
		sc := &e.Config
		sc.Address = operator.Embedded(n, false)
		var err error
		if sc.Topology, err = topology.FromGraph(t.config.Graph, sc.Address); err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		t.config.spread(row, e.ID, sc)
		sc.Liveness = &stack.Liveness{Budget: float64(t.probes())}
		list = append(list, e)
	}
	e, err := StartEmbedded(t.lab, list)
	if err != nil {
		return nil, err
	}
	if err := e.Await(ctx, false); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	s := e.Session(false)
	counters := s.counters
	s.counters = func() (c Counters, err error) {
		if c, err = counters(); err == nil {
			c.Links, err = t.links()
		}
		return c, err
	}
	s.close = e.Close
	return s, nil
}

// links reads the counters of all links, by their numbers in the graph.
func (t *graphLab) links() ([]LinkBytes, error) {
	g := t.config.Graph
	all := make([]LinkBytes, g.NumLinks())
	for id := range graph.NodeID(g.NumNodes()) {
		counters, err := t.lab.PortBytes(topology.NodeID(id))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.Node(id).Name, err)
		}
		now := time.Now()
		down := g.Down(id) // a node's ports: those that lead down come first
		for i, p := range down {
			all[p.Link].Down, all[p.Link].DownAt = counters[i].TxBytes, now
		}
		for i, p := range g.Up(id) {
			all[p.Link].Up, all[p.Link].UpAt = counters[len(down)+i].TxBytes, now
		}
	}
	return all, nil
}
