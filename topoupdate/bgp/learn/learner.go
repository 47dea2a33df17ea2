// Package learn has a host learn its fabric by BGP from the switches that it is wired to, and
// follow their news. weft host uses its Learner. A Go service with an embedded stack.Host uses
// a Fabric:
//
//	fabric, err := learn.Open(ctx, learn.Config{AS: 4200000001, Neighbors: neighbors, Addresses: []netip.Addr{addr, addr6}})
//	host, device, err := uplink.NewHost(stack.Config{Address: addr, Address6: addr6, Liveness: &stack.Liveness{},
//		Topology: fabric.Topology(), Topology6: fabric.Topology6()}, uplink.Options{})
//	err = fabric.Follow(host)
//
// The Host's addresses are free ones of the rack, of each family, beside the kernel's own: as
// those of a container or a virtual machine are. The edge switch leads them to the machine, by a
// route (a prefix behind a host, graph.Node.Prefixes) or because the machine answers for them
// in the rack's segment. Nothing is announced for them. The rack's own prefix, which other racks
// know, has them, so AS paths end at switches as ever, and a fabric of 27,648 hosts does not
// have as many routes more in each switch. Operators let hosts hear routes, but rarely announce
// some: a host that may announce can draw others' traffic to itself. What weft plan prints has
// switches refuse all that hosts announce (its route map weft-none).
package learn

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"weft/topology/graph"
	"weft/topoupdate/bgp"
	"weft/topoupdate/bgp/session"
)

// ErrUnlearned says that the switches have not told enough yet.
var ErrUnlearned = errors.New("BGP")

// Learner hears from a host's switches what the fabric is. Its methods may be called
// concurrently.
type Learner struct {
	session *session.Session
	as      uint32
	wake    chan struct{}
	began   time.Time
}

// patience is how long a switch may take to tell that it has sent all its routes (RFC 4724).
// Not every switch does.
const patience = 5 * time.Second

// Listen opens the sessions. If c has no RouterID, it is the machine's first IPv4 address. The
// caller closes the Learner.
func Listen(c session.Config) (*Learner, error) {
	if !c.RouterID.IsValid() {
		own, err := session.OwnAddresses()
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(own, netip.Addr.Is4); i >= 0 {
			c.RouterID = own[i]
		}
	}
	l := &Learner{as: c.AS, wake: make(chan struct{}, 1), began: time.Now()}
	c.Changed = func() {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	var err error
	if l.session, err = session.Open(c); err != nil {
		return nil, err
	}
	return l, nil
}

// Changed is ready when the switches have told something. One caller may receive from it.
func (l *Learner) Changed() <-chan struct{} { return l.wake }

// Close ends the sessions.
func (l *Learner) Close() error { return l.session.Close() }

// Views returns what the switches tell of now, as the first of the addresses seen of each
// family sees it. They are of this host, and own are all others that it has. It wraps
// ErrUnlearned while too little is known: there are no sessions, or no other rack.
func (l *Learner) Views(own, seen []netip.Addr) (bgp.Views, error) {
	if missing := l.session.Missing(); len(missing) > 0 {
		return bgp.Views{}, fmt.Errorf("%w: no session with %v; does the switch know this host as a neighbor of AS %d?", ErrUnlearned, missing, l.as)
	}
	if !l.session.Complete() && time.Since(l.began) < patience {
		return bgp.Views{}, fmt.Errorf("%w: not all routes have come yet", ErrUnlearned)
	}
	all := slices.Clone(seen)
	for _, a := range own {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	spec, _ := l.session.Spec(bgp.Host{Name: "this-host", Addresses: all})
	g, err := graph.New(spec)
	if err != nil {
		return bgp.Views{}, fmt.Errorf("%w: %w", ErrUnlearned, err)
	}
	v, err := bgp.ViewsOf(g, seen)
	if err != nil {
		return bgp.Views{}, fmt.Errorf("%w: %w", ErrUnlearned, err)
	}
	for edge := range v.Fabric.Racks() {
		if !v.Fabric.Paths(0, edge).Direct() {
			return v, nil
		}
	}
	return bgp.Views{}, fmt.Errorf("%w: the switches announce no other rack yet", ErrUnlearned)
}
