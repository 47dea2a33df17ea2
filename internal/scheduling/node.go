package scheduling

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"weft/flowcell"
	"weft/hedera/wire"
	"weft/internal/elephant"
	"weft/internal/event"
	"weft/internal/eventlog"
	"weft/topoupdate"
)

// Config configures a Node.
type Config struct {
	Client   wire.ClientConfig // Place is the Node's
	Detector elephant.Config
	Every    time.Duration // between reports
	Log      *eventlog.Log // nil: none

	// Now is the kernel's monotonic clock, by which pins expire.
	Now func() (time.Duration, error)
	// Counts reads what the program has counted, into a slice that it may use.
	Counts func([]elephant.Count) ([]elephant.Count, error)
	// SetPins has the program obey these pins and no others. It keeps the slice. Both are called by one
	// goroutine at a time.
	SetPins func([]elephant.Pin) error
	// Known says why a pin's path is none of this node's; nil if it is one.
	Known func(elephant.Pin) error
}

// gather is Node.gather. A scheduler says all it has to say in many messages, one after the
// other, and telling the program means to walk through all of its pins.
const gather = 50 * time.Millisecond

// client is *wire.Client.
type client interface {
	Send(wire.Report) bool
	SetKeys(topoupdate.Keys) error
	Status() wire.ClientStatus
	Close() error
}

// Node reports and pins. Its methods are safe for concurrent use.
type Node struct {
	cfg     Config
	client  client
	stop    chan struct{}
	changed chan struct{} // something is dirty
	gather  time.Duration // how long placements are gathered until the program learns of them
	ended   sync.WaitGroup

	started time.Time
	once    sync.Once

	mu       sync.Mutex
	detector *elephant.Detector
	pins     elephant.Pins
	counts   []elephant.Count
	reported []elephant.Rate
	unknown  uint64 // placements whose path is not known
	refused  string // the latest placement that was
	dirty    bool   // the program does not know all pins
	trouble  string // why the program cannot be read or told; "" if all is well
	heard    bool   // a scheduler leads
	loops    loopTimes
}

// Start begins. The socket is in the network namespace of the calling thread.
func Start(c Config) (*Node, error) {
	n, err := newNode(c)
	if err != nil {
		return nil, err
	}
	c.Client.Place = n.place
	n.mu.Lock() // a placement may come before client is set
	defer n.mu.Unlock()
	cl, err := wire.Dial(c.Client)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	n.begin(cl)
	return n, nil
}

func newNode(c Config) (*Node, error) {
	d, err := elephant.NewDetector(c.Detector)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	if c.Every <= 0 {
		return nil, errors.New("scheduler: Every must be more than 0")
	}
	return &Node{cfg: c, detector: d, stop: make(chan struct{}), changed: make(chan struct{}, 1), gather: gather}, nil
}

func (n *Node) begin(c client) {
	n.client, n.started = c, time.Now()
	n.ended.Add(1)
	go n.run()
}

// Started is when the times of keys count from.
func (n *Node) Started() time.Time { return n.started }

// SetKeys exchanges the keys that reports are signed with.
func (n *Node) SetKeys(k topoupdate.Keys) error { return n.client.SetKeys(k) }

// Close ends reports and takes the pins away.
func (n *Node) Close() (err error) {
	n.once.Do(func() {
		close(n.stop)
		n.ended.Wait()
		err = n.client.Close()
		n.mu.Lock()
		defer n.mu.Unlock()
		err = errors.Join(err, n.cfg.SetPins(nil))
	})
	return err
}

func (n *Node) run() {
	defer n.ended.Done()
	ticker := time.NewTicker(n.cfg.Every)
	defer ticker.Stop()
	for {
		select {
		case <-n.stop:
			return
		case <-ticker.C:
			n.turn()
		case <-n.changed:
			select {
			case <-n.stop:
				return
			case <-time.After(n.gather):
			}
			n.flush()
		}
	}
}

// turn reads, reports, and lets what has expired go.
func (n *Node) turn() {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, err := n.cfg.Now()
	if err == nil {
		n.counts, err = n.cfg.Counts(n.counts)
	}
	if err != nil {
		n.complain(err)
		return
	}
	n.reported = n.detector.Read(now, n.counts)
	r := wire.Report{Flows: make([]wire.Flow, len(n.reported))}
	for i, e := range n.reported {
		r.Flows[i] = wire.Flow{Tuple: TupleOf(e.Flow), Rate: uint64(e.Bits)}
	}
	n.hear(n.client.Send(r))
	holds := func(f elephant.Flow) bool { return n.pins.Holds(now, f) }
	if n.heard {
		n.loops.report(now, n.reported, holds)
	} else {
		n.loops.report(now, nil, holds)
	}
	if n.pins.Expire(now) || n.dirty {
		err = n.setPins()
	}
	n.complain(err)
}

// flush has the program learn what has been placed.
func (n *Node) flush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dirty {
		n.complain(n.setPins())
	}
}

// setPins has the program obey the pins. mu is held. If it fails the next turn tries again.
func (n *Node) setPins() error {
	list := n.pins.List()
	err := n.cfg.SetPins(list)
	n.dirty = err != nil
	if err != nil {
		return err
	}
	now, err := n.cfg.Now()
	if err == nil {
		n.loops.inForce(now, list)
	}
	return err
}

// hear tells when a scheduler begins to lead or none does any more.
func (n *Node) hear(heard bool) {
	if heard == n.heard {
		return
	}
	if n.heard = heard; n.cfg.Log == nil {
		return
	}
	if heard {
		n.cfg.Log.Infof(event.Scheduled, "the scheduler at %s leads: elephants are reported to it", n.client.Status().Leader)
	} else {
		n.cfg.Log.Warn(event.Unscheduled, "no scheduler leads: elephants go by the rule once their pins expire")
	}
}

func (n *Node) complain(err error) {
	why := ""
	if err != nil {
		why = err.Error()
	}
	if why != n.trouble && why != "" && n.cfg.Log != nil {
		n.cfg.Log.Warnf(event.Limited, "elephants are not scheduled: %s", why)
	}
	n.trouble = why
}

// place takes placements.
func (n *Node) place(list []wire.Placement) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, err := n.cfg.Now()
	if err != nil {
		n.complain(err)
		return
	}
	for _, p := range list {
		n.placeOne(now, p)
	}
	n.pins.Expire(now)
	n.dirty = true
	select {
	case n.changed <- struct{}{}:
	default: // it is known
	}
}

func (n *Node) placeOne(now time.Duration, p wire.Placement) {
	pin := elephant.Pin{Flow: flowOf(p.Tuple), Path: p.Path, Via: p.Via}
	if p.For <= 0 {
		n.pins.Drop(pin.Flow)
		return
	}
	if err := n.cfg.Known(pin); err != nil {
		n.unknown++
		n.refused = err.Error()
		return
	}
	if err := n.pins.Set(now, pin.Flow, p.Path, p.Via, min(p.For, elephant.MaxValid)); err != nil {
		n.refused = err.Error()
	}
}

// TupleOf is a flow as the scheduler has it.
func TupleOf(f elephant.Flow) flowcell.FiveTuple {
	return flowcell.FiveTuple{Src: flowcell.AddressFrom(f.Src.Addr()), Dst: flowcell.AddressFrom(f.Dst.Addr()),
		SrcPort: f.Src.Port(), DstPort: f.Dst.Port(), Proto: f.Protocol}
}

func flowOf(t flowcell.FiveTuple) elephant.Flow {
	return elephant.Flow{Src: netip.AddrPortFrom(t.Src.IP(), t.SrcPort), Dst: netip.AddrPortFrom(t.Dst.IP(), t.DstPort), Protocol: t.Proto}
}
