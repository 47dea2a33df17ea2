package daemon

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"weft/internal/config"
	"weft/topology"
	"weft/topology/graph"
	"weft/topoupdate/bgp"
	"weft/topoupdate/bgp/session"
)

// learns reports whether the host learns the fabric from its switches.
func (c *Config) learns() bool { return c.Topology == TopologyBGP && !c.tunnels() }

// checkBGP checks what the sessions need.
func (c *Config) checkBGP() error {
	if c.labels() {
		return c.lines.Errorf("encapsulation", "srv6 needs the ports of switches, which topology: bgp does not tell; use ipip")
	}
	_, err := c.session()
	return err
}

// session is the configuration of the sessions with the host's switches.
func (c *Config) session() (s session.Config, err error) {
	if c.BGP.AS == 0 {
		return s, c.lines.Errorf("bgp.as", "is missing; give this host a number of its own, such as 4200000001, under which its switches know it")
	}
	if err := c.between("bgp.as", c.BGP.AS, 1, math.MaxUint32); err != nil {
		return s, err
	}
	s.AS = uint32(c.BGP.AS)
	if len(c.BGP.Neighbors) == 0 {
		return s, c.lines.Errorf("bgp.neighbors", "is empty; name the switches that this host is wired to, such as [192.168.1.1=65101]")
	}
	password, err := c.password()
	if err != nil {
		return s, err
	}
	for i, text := range c.BGP.Neighbors {
		n, err := session.ParseNeighbor(text)
		if err != nil {
			return s, c.lines.Errorf(fmt.Sprintf("bgp.neighbors[%d]", i), "%w", err)
		}
		n.Password = password
		s.Neighbors = append(s.Neighbors, n)
	}
	return s, nil
}

// password reads that of the sessions (RFC 2385), "" for none.
func (c *Config) password() (string, error) {
	if c.BGP.PasswordFile == "" {
		return "", nil
	}
	password, err := config.ReadPassword(c.BGP.PasswordFile)
	if err != nil {
		return "", c.lines.Errorf("bgp.password_file", "%w", err)
	}
	return password, nil
}

// viewOf returns a graph as the host sees it that has one of these addresses; if one is
// configured, that of IPv4 is it.
func (c *Config) viewOf(g *graph.Graph, own []netip.Addr) (v views, err error) {
	for _, a := range own {
		id, ok := g.ByAddr(a)
		switch {
		case !ok || int(id) >= g.NumHosts():
		case a.Is6() && v.fabric6 == nil:
			v.fabric6, _ = topology.FromGraph(g, a) // without IPv6 at all bouncing switches none is carried
		case a.Is4() && v.fabric == nil && (!c.Address.IsValid() || a == c.Address):
			if v.fabric, err = topology.FromGraph(g, a); err != nil {
				return views{}, err
			}
		}
	}
	if v.fabric == nil {
		return views{}, fmt.Errorf("no host has an IPv4 address of this machine, %v, or address: is another", own)
	}
	return v, nil
}

// checkGraph makes the fabric of a graph.
func (c *Config) checkGraph(g *graph.Graph) (err error) {
	own, err := session.OwnAddresses()
	if err == nil {
		c.views, err = c.viewOf(g, own)
	}
	if err != nil {
		return c.lines.Errorf("topology", "%s: %w", c.Topology, err)
	}
	return nil
}

// errUnlearned says that the switches have not told enough yet.
var errUnlearned = errors.New("BGP")

// learner hears from the host's switches what the fabric is.
type learner interface {
	fabric(*Config) (views, error) // wraps errUnlearned while too little is known
	changed() <-chan struct{}
	Close() error
}

// bgpLearner is the learner of real sessions.
type bgpLearner struct {
	session *session.Session
	wake    chan struct{}
	began   time.Time
	ports   map[netip.Addr]string // the devices that lead to the neighbours, as far as known
}

// patience is how long a switch may take to tell that it has sent all its routes (RFC 4724).
// Not every switch does.
const patience = 5 * time.Second

// learn opens the sessions. The host's router ID is its address, or its first one.
func learn(c *Config) (learner, error) {
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	own, err := session.OwnAddresses()
	if err != nil {
		return nil, err
	}
	s.RouterID = c.Address
	for _, a := range own {
		if a.Is4() && !s.RouterID.IsValid() {
			s.RouterID = a
		}
	}
	l := &bgpLearner{wake: make(chan struct{}, 1), began: time.Now(), ports: make(map[netip.Addr]string)}
	s.Changed = func() {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	if l.session, err = session.Open(s); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *bgpLearner) changed() <-chan struct{} { return l.wake }

func (l *bgpLearner) Close() error { return l.session.Close() }

// fabric returns what the switches tell of now. Of several switches it waits for all at the
// beginning, and later for one.
func (l *bgpLearner) fabric(c *Config) (views, error) {
	missing := l.session.Missing()
	if all := len(missing) == len(c.BGP.Neighbors); all || len(missing) > 0 && time.Since(l.began) < patience {
		return views{}, fmt.Errorf("%w: no session with %v; does the switch know this host as a neighbor of AS %d?", errUnlearned, missing, c.BGP.AS)
	}
	if !l.session.Complete() && time.Since(l.began) < patience {
		return views{}, fmt.Errorf("%w: not all routes have come yet", errUnlearned)
	}
	own, err := session.OwnAddresses()
	if err != nil {
		return views{}, err
	}
	spec, _ := l.session.Spec(bgp.Host{Name: thisHost, Addresses: own})
	l.setPorts(c, spec, missing)
	g, err := graph.New(spec)
	if err != nil {
		return views{}, fmt.Errorf("%w: %w", errUnlearned, err)
	}
	v, err := c.viewOf(g, own)
	if err != nil {
		return views{}, fmt.Errorf("%w: %w", errUnlearned, err)
	}
	for edge := range v.fabric.Racks() {
		if !v.fabric.Paths(0, edge).Direct() {
			return v, nil
		}
	}
	return views{}, fmt.Errorf("%w: the switches announce no other rack yet", errUnlearned)
}

// thisHost is what the host is called in the graph that it learns.
const thisHost = "this-host"

// setPorts names the host's ports by the devices that lead to its switches: those of uplink, or
// those that the kernel's routes led to when a session was there, which has to be on the link.
func (l *bgpLearner) setPorts(c *Config, spec graph.Spec, missing []netip.Addr) {
	s, err := c.session()
	if err != nil || len(s.Neighbors) < 2 {
		return
	}
	devices := make(map[string]string) // by switch
	for i, n := range s.Neighbors {
		if len(c.Uplink) > 1 {
			l.ports[n.Addr] = c.Uplink[i]
		} else if !slices.Contains(missing, n.Addr) && l.ports[n.Addr] == "" {
			l.ports[n.Addr] = deviceTo(n.Addr)
		}
		devices[bgp.NameOf(n.AS)] = l.ports[n.Addr]
	}
	if len(slices.Compact(slices.Sorted(maps.Values(devices)))) < len(devices) {
		return // they are on one link
	}
	for i := range spec.Links {
		if k := &spec.Links[i]; k.Ends[0] == thisHost {
			k.Ports[0] = devices[k.Ends[1]]
		}
	}
}
