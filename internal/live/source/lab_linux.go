package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"weft/internal/daemon"
	"weft/internal/kernel"
	"weft/internal/live"
	"weft/internal/overview"
	"weft/internal/service"
	"weft/lab"
	"weft/topology"
)

// Lab is a live.Source and a live.Breaker: a lab that is up. It goes on with one that is built
// anew under the same name.
type Lab struct {
	name string
	kind string

	mu     sync.Mutex // of what follows; Fail and Heal come beside the rest
	lab    *lab.Lab   // nil: it was not up at the latest look
	fabric *live.Fabric
	nodes  []topology.Node
	at     map[topology.LinkID]int            // positions in fabric.Links
	hosts  map[topology.NodeID]*overview.Host // what daemons have said
	turn   int                                // whose status is asked for next
}

// statusesAtOnce bounds the daemons that are asked for one Sample. Others' answers are those of
// a Sample before.
const statusesAtOnce = 16

// statusTime bounds the wait for one daemon.
const statusTime = 500 * time.Millisecond

// OpenLab opens the lab of a name, which must be up. kind is live.KindLab or live.KindDemo; only
// the former can be made to fail.
func OpenLab(name, kind string) (*Lab, error) {
	l := &Lab{name: name, kind: kind}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

// AwaitLab is OpenLab for a lab that may come up later, under live.KindDemo.
func AwaitLab(name string) *Lab { return &Lab{name: name, kind: live.KindDemo} }

// open opens the lab, and makes a new fabric of it.
func (l *Lab) open() error {
	opened, err := lab.Open(l.name)
	if err != nil {
		return err
	}
	version := 1
	if l.fabric != nil {
		version = l.fabric.Version + 1
	}
	f := &live.Fabric{Version: version, Kind: l.kind, Name: l.name, CanFail: l.kind == live.KindLab}
	hosts, switches, links := opened.Config.Size()
	what := "a graph"
	if t := opened.Config.Topology; t != nil {
		what = t.String()
	}
	f.About = fmt.Sprintf("%s, %d hosts, %d switches, %d links", what, hosts, switches, links)
	l.nodes, l.at = opened.Nodes(), make(map[topology.LinkID]int)
	l.hosts = make(map[topology.NodeID]*overview.Host)
	at := make(map[topology.NodeID]int)
	for i, n := range l.nodes {
		at[n.ID] = i
		node := live.Node{Name: n.Name, Tier: opened.Tier(n.ID)}
		if n.Addr.IsValid() {
			node.Address = n.Addr.String()
		}
		f.Nodes = append(f.Nodes, node)
	}
	for _, c := range opened.Cables() {
		l.at[c.Link] = len(f.Links)
		f.Links = append(f.Links, live.Link{Name: c.Name, A: at[c.A], B: at[c.B], Rate: c.RateMbit * 1e6, Room: uint64(c.QueueBytes)})
	}
	if err := f.Check(); err != nil {
		opened.Close()
		return err
	}
	l.lab, l.fabric = opened, f
	l.lab.Current() // remembers which lab it is
	return nil
}

// Fabric returns that of the lab; an error while it is not up.
func (l *Lab) Fabric(context.Context) (*live.Fabric, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lab != nil && !l.lab.Current() {
		l.lab.Close()
		l.lab = nil
	}
	if l.lab == nil {
		if err := l.open(); err != nil {
			return nil, err
		}
	}
	return l.fabric, nil
}

// Sample reads all counters.
func (l *Lab) Sample(ctx context.Context) (live.Sample, error) {
	l.mu.Lock()
	opened, fabric := l.lab, l.fabric
	l.mu.Unlock()
	if opened == nil {
		return live.Sample{}, fmt.Errorf("lab %s is not up: weft lab up --name %s", l.name, l.name)
	}
	s := live.Sample{At: time.Now(), Links: make([]live.LinkSample, len(fabric.Links))}
	for i := range s.Links {
		s.Links[i].State = live.Working
	}
	failed := opened.FailedLinks()
	var trouble []error
	for _, n := range l.nodes {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		if err := l.ports(opened, n, failed, &s); err != nil {
			trouble = append(trouble, fmt.Errorf("%s: %w", n.Name, err))
		}
	}
	if err := l.askHosts(ctx, opened, &s); err != nil {
		trouble = append(trouble, err)
	}
	if len(trouble) == len(l.nodes) { // taken down meanwhile
		return s, errors.Join(trouble[:1]...)
	}
	if len(trouble) > 0 {
		s.Trouble = errors.Join(trouble[:min(3, len(trouble))]...).Error()
	}
	modes, err := opened.Failures()
	if err == nil {
		for _, target := range slices.Sorted(maps.Keys(modes)) {
			s.Failures = append(s.Failures, live.Failure{Target: target, Mode: string(modes[target])})
		}
	}
	return s, nil
}

// ports reads what a node has sent by its links.
func (l *Lab) ports(opened *lab.Lab, n topology.Node, failed map[topology.LinkID]lab.FailureMode, s *live.Sample) error {
	ports, err := opened.PortStates(n.ID)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, p := range ports {
		i, ok := l.at[p.Link]
		if !ok {
			continue
		}
		link := &s.Links[i]
		c := live.Counters{At: now, Known: true, Bytes: p.TxBytes, Packets: p.TxPackets, Drops: p.Drops, Queue: p.Backlog}
		if p.Upper {
			link.Down = c
		} else {
			link.Up = c
		}
		switch {
		case !p.Up || failed[p.Link] == lab.FailLoud:
			link.State = live.Broken
		case failed[p.Link] != "":
			link.State = max(link.State, live.Silent)
		}
	}
	return nil
}

// askHosts adds the hosts' connections, and what their daemons say if there are any.
func (l *Lab) askHosts(ctx context.Context, opened *lab.Lab, s *live.Sample) (trouble error) {
	byAddr := make(map[netip.Addr]string)
	var hosts []topology.Node
	for i, n := range l.nodes {
		if l.fabric.Nodes[i].Tier == 0 {
			hosts = append(hosts, n)
			byAddr[n.Addr] = n.Name
			if n.Addr.Is4() {
				byAddr[topology.Addr6(n.Addr)] = n.Name
			}
		}
	}
	nameOf := func(a netip.Addr) string {
		if name, ok := byAddr[a]; ok {
			return name
		}
		if t := opened.Config.Topology; t != nil {
			if host, _, ok := t.HostAt(a); ok {
				return t.HostName(host)
			}
		}
		return ""
	}
	var conns []live.ConnSample
	for i, n := range hosts {
		due := (i-l.turn+len(hosts))%len(hosts) < statusesAtOnce
		socket := ""
		err := opened.Do(n.ID, func() (err error) {
			all, err := kernel.Connections()
			conns = append(conns, connSamples(n.Name, all, nameOf)...)
			socket, _ = daemon.StatusSocket()
			return err
		})
		if err != nil {
			trouble = fmt.Errorf("%s: %w", n.Name, err)
			continue
		}
		if due {
			l.askHost(ctx, n, socket)
		}
		if a := l.hosts[n.ID]; a != nil {
			s.Ways = append(s.Ways, waysOf(n.Name, a)...)
			s.Hosts = append(s.Hosts, hostOf(n.Name, a))
			s.Suspects = append(s.Suspects, suspectsOf(n.Name, a)...)
		}
	}
	if len(hosts) > 0 {
		l.turn = (l.turn + statusesAtOnce) % len(hosts)
	}
	s.Conns = bothEnds(conns)
	return trouble
}

// askHost asks a host's daemon, if one runs there.
func (l *Lab) askHost(ctx context.Context, n topology.Node, socket string) {
	if _, err := os.Lstat(socket); err != nil {
		delete(l.hosts, n.ID)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	text, err := service.AskStatus(ctx, socket, "weft host")
	if err != nil {
		delete(l.hosts, n.ID)
		return
	}
	if status, err := overview.ParseHost(text); err == nil {
		l.hosts[n.ID] = &status
	}
}

// Paths returns the paths between two nodes.
func (l *Lab) Paths(from, to int) []live.Path {
	l.mu.Lock()
	opened, fabric := l.lab, l.fabric
	l.mu.Unlock()
	if fabric == nil {
		return []live.Path{}
	}
	var t *topology.Topology
	if opened != nil && len(opened.Config.Only) == 0 {
		t = opened.Config.Topology
	}
	return pathsOf(t, fabric, from, to)
}

// Fail makes a link or node of the lab fail.
func (l *Lab) Fail(target, mode string) error {
	return l.change(func(opened *lab.Lab) error {
		_, err := opened.Fail(target, lab.FailureMode(mode))
		return err
	})
}

// Heal heals it; "" is all.
func (l *Lab) Heal(target string) error {
	return l.change(func(opened *lab.Lab) error {
		var targets []string
		if target != "" {
			targets = append(targets, target)
		}
		_, err := opened.Heal(targets...)
		return err
	})
}

func (l *Lab) change(do func(*lab.Lab) error) error {
	l.mu.Lock()
	opened := l.lab
	l.mu.Unlock()
	switch {
	case l.kind != live.KindLab:
		return errors.New("the demo's lab is its own: nothing can be made to fail in it")
	case opened == nil:
		return fmt.Errorf("lab %s is not up", l.name)
	}
	return do(opened)
}

// Modes are the lab's.
func (l *Lab) Modes() []string {
	return []string{string(lab.FailLoud), string(lab.FailSilent), string(lab.FailSilentData)}
}

// Close gives back the handles; the lab stays up.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lab == nil {
		return nil
	}
	err := l.lab.Close()
	l.lab = nil
	return err
}
