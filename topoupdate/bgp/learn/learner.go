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
	"reflect"
	"slices"
	"sync"
	"time"

	"weft/internal/bucket"
	"weft/topology/graph"
	"weft/topoupdate/bgp"
	"weft/topoupdate/bgp/session"
)

// ErrUnlearned says that the switches have not told enough yet.
var ErrUnlearned = errors.New("BGP")

// Options say how a Learner listens.
type Options struct {
	session.Config
	// See returns those of the host's addresses as which it sees the fabric, the first of each
	// family. own are the machine's. nil: these are it.
	See func(own []netip.Addr) []netip.Addr
	// SIDs leaves out paths by switches without SIDs: packets go to SIDs.
	SIDs bool
	// Ports names the host's ports in what its switches tell, Nodes[0]. missing are the
	// neighbours without a session. One goroutine calls it. nil: they have no names.
	Ports func(spec graph.Spec, missing []netip.Addr)
}

// Learner hears from a host's switches what the fabric is. A goroutine of its own makes views
// of what they tell, so that nobody waits for that. Its methods may be called concurrently.
type Learner struct {
	options Options
	session *session.Session
	opened  time.Time
	news    chan struct{} // from the sessions
	wake    chan struct{} // for whoever waits for views
	stop    chan struct{}
	ended   sync.WaitGroup

	mu     sync.Mutex
	latest bgp.Views
	err    error
	doubts []string
	made   uint64        // views
	took   time.Duration // to make the latest
}

// Making views takes a tenth of a processor's time in the long run, and a quarter of a second
// of it at once: so a failure after some quiet is not waited with.
const (
	share = 0.1
	burst = 250 * time.Millisecond
)

// effort keeps work to that: each microsecond of it is a token.
func effort() bucket.Bucket {
	return bucket.New(share*1e6, time.Duration(float64(burst)/share))
}

// recheck is how often what does not come from the sessions is looked at: the time that they
// have had, and the host's addresses.
const recheck = time.Second

// Listen opens the sessions. If there is no RouterID, it is the machine's first IPv4 address.
// The caller closes the Learner.
func Listen(o Options) (*Learner, error) {
	self, err := session.ThisHost("")
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(self.Addresses, netip.Addr.Is4); i >= 0 && !o.RouterID.IsValid() {
		o.RouterID = self.Addresses[i]
	}
	l := &Learner{options: o, opened: time.Now(), news: make(chan struct{}, 1), wake: make(chan struct{}, 1), stop: make(chan struct{})}
	o.Changed = func() { nudge(l.news) }
	if l.session, err = session.Open(o.Config); err != nil {
		return nil, err
	}
	l.err = l.silence()
	l.ended.Go(l.run)
	return l, nil
}

// nudge wakes who waits, if that is not awake yet.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Changed is ready when the switches have told something. One caller may receive from it.
func (l *Learner) Changed() <-chan struct{} { return l.wake }

// Close ends the sessions. It must be called once.
func (l *Learner) Close() error {
	close(l.stop)
	err := l.session.Close()
	l.ended.Wait()
	return err
}

// Views returns what the switches have told. It wraps ErrUnlearned while too little is known:
// there are no sessions, or no other rack.
func (l *Learner) Views() (bgp.Views, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest, l.err
}

// run makes views of the news, as often as it may.
func (l *Learner) run() {
	every := time.NewTicker(recheck)
	defer every.Stop()
	share := effort()
	var self bgp.Host
	for {
		again := false
		select {
		case <-l.stop:
			return
		case <-l.news:
			again = true
		case <-every.C:
		}
		now, err := session.ThisHost("this-host")
		if !again && l.learned() && reflect.DeepEqual(now, self) {
			continue
		}
		if wait := share.Ready(1) - time.Since(l.opened); wait > 0 {
			select {
			case <-l.stop:
				return
			case <-time.After(wait):
			}
		}
		self = now
		began := time.Now()
		var v bgp.Views
		var doubts []string
		if err == nil {
			v, doubts, err = l.make(self)
		}
		took := time.Since(began)
		share.TakeWithin(int(took.Microseconds())+1, time.Hour, began.Sub(l.opened))
		l.publish(v, doubts, err, took)
	}
}

func (l *Learner) learned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil
}

func (l *Learner) publish(v bgp.Views, doubts []string, err error, took time.Duration) {
	l.mu.Lock()
	l.latest, l.err, l.took = v, err, took
	l.made++
	if err == nil {
		l.doubts = doubts
	}
	l.mu.Unlock()
	nudge(l.wake)
}

// silence says that too little is known yet; nil if that is not so.
func (l *Learner) silence() error {
	missing, silent := l.session.Missing()
	switch {
	case len(missing) == 0 || len(missing) < len(l.options.Neighbors) && time.Since(l.opened) > session.Patience:
		return nil
	case len(silent) > 0:
		return fmt.Errorf("%w: no session with %v; does the switch know this host as a neighbor of AS %d?", ErrUnlearned, silent, l.options.AS)
	}
	return fmt.Errorf("%w: not all routes have come yet", ErrUnlearned)
}

// make makes views of what the switches tell, and says what of that is doubtful.
func (l *Learner) make(self bgp.Host) (v bgp.Views, doubts []string, err error) {
	if err := l.silence(); err != nil {
		return v, nil, err
	}
	seen := self.Addresses
	if l.options.See != nil {
		seen = l.options.See(self.Addresses)
	}
	all := slices.Clone(seen)
	for _, a := range self.Addresses {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	self.Addresses = all
	spec, doubts := l.session.Spec(self)
	if l.options.Ports != nil {
		missing, _ := l.session.Missing()
		l.options.Ports(spec, missing)
	}
	g, err := graph.New(spec)
	if err == nil {
		v, err = bgp.HeardViews(g, seen, l.options.SIDs)
	}
	if err != nil {
		return v, doubts, fmt.Errorf("%w: %w", ErrUnlearned, err)
	}
	return v, doubts, nil
}

// Status is what a Learner knows of the sessions with the host's switches.
type Status struct {
	session.Status
	Fabrics uint64   `json:"fabrics"` // made of what was told
	Took    float64  `json:"took_ms"` // to make the latest
	Doubts  []string `json:"doubts,omitempty"`
}

// Status returns it as it is now.
func (l *Learner) Status() *Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &Status{Status: l.session.Status(), Fabrics: l.made, Took: float64(l.took.Microseconds()) / 1000, Doubts: slices.Clone(l.doubts)}
	for _, n := range s.Neighbors {
		if n.Why != "" {
			s.Doubts = append(s.Doubts, n.Why)
		}
	}
	return s
}
