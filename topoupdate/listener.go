package topoupdate

import (
	"errors"
	"fmt"
	"time"

	"weft/topology"
)

// ListenerConfig is what a Listener has to know.
type ListenerConfig struct {
	// Topology is the baseline. What is down in it stays down whatever anybody
	// says.
	Topology *topology.Topology
	Self     topology.NodeID // a host
	Keys     Keys
	MaxAge   time.Duration // as the switches', 0: DefaultRefresh × 4
}

// Listener is a server's part of the protocol: it listens to its edge switch and
// never says anything (DRB §4.3, rule 1). It is not safe for concurrent use. It
// begins with the baseline, to which it comes back if nothing is heard for
// MaxAge.
//
// # What a replay can do
//
// Who does not speak cannot challenge, so a Listener knows a recording only by
// what has come before it: an edge switch's session and counter grow, and so do
// each originator's incarnation and sequence. A Listener that has heard its edge
// switch once takes no recording of anything earlier, until the switch has been
// silent for MaxAge: then an older session is let in, for the switch may have
// lost its clock. One that has just started and has heard nothing takes a
// recording for news, from whoever can send to it with a TTL of 255, that is on
// its own cable. What it was made to believe ends, for every originator that
// lives, with that one's next entry: at most Repeat later if it says that
// something is down, at most Refresh if not. For one that does not live it ends
// after MaxAge, since a message says how old its entries were when it was made.
// Only links that were once down can be slandered so. (Without keys, nobody on the
// cable needs a recording.)
type Listener struct {
	fabric *fabric
	ring   *keyring
	db     *database
	maxAge time.Duration
	edge   topology.Port // the host's only one; its peer is the edge switch

	now     time.Duration
	session uint64 // the edge switch's; 0: not heard yet
	heard   time.Duration
	window  replayWindow
	shown   *topology.Topology // to whom asked last
	stats   ListenerStats
}

// ListenerStats counts what a Listener has heard.
type ListenerStats struct {
	Received  uint64 // messages, rejected ones included
	Rejected  Rejects
	Changed   uint64 // entries that said something else than before
	Refreshed uint64 // entries that were newer and said the same
	Repeated  uint64 // entries that were known
	Older     uint64 // entries that were older than what is known
	Snapshots uint64 // topologies made
}

// NewListener returns a Listener that has heard nothing.
func NewListener(c ListenerConfig) (*Listener, error) {
	setDefault(&c.MaxAge, defaultAges*DefaultRefresh)
	switch {
	case c.Topology == nil:
		return nil, errors.New("topoupdate: ListenerConfig.Topology is missing: give the baseline")
	case c.MaxAge < 0:
		return nil, fmt.Errorf("topoupdate: ListenerConfig.MaxAge is %v: give what the switches have", c.MaxAge)
	}
	f, err := newFabric(c.Topology)
	if err != nil {
		return nil, err
	}
	if !c.Topology.Valid(c.Self) || f.isSwitch(c.Self) {
		return nil, fmt.Errorf("topoupdate: ListenerConfig.Self is %d, which is no host of %s", c.Self, c.Topology)
	}
	ring, err := newKeyring(c.Keys)
	if err != nil {
		return nil, fmt.Errorf("topoupdate: ListenerConfig.%w", err)
	}
	return &Listener{
		fabric: f, ring: ring, db: newDatabase(f, c.MaxAge), maxAge: c.MaxAge,
		edge:  c.Topology.Ports(c.Self)[0],
		shown: f.Topology,
	}, nil
}

// Receive takes a message, any bytes, of which it keeps none. It is true if
// Topology is another one by it.
func (l *Listener) Receive(packet []byte, now time.Duration) (changed bool) {
	l.now = max(l.now, now)
	l.stats.Received++
	if err := l.receive(packet); err != nil {
		l.stats.Rejected.add(err)
	}
	return l.renew()
}

func (l *Listener) receive(packet []byte) error {
	h, err := parseHeader(packet, l.fabric.fingerprint)
	switch {
	case err != nil:
		return err
	case h.kind != typeUpdate:
		return RejectType
	case h.sender != l.edge.Peer || h.senderPort != l.edge.PeerPort:
		return RejectSender
	case h.session == l.session && !l.window.fresh(h.counter):
		return RejectReplay
	case h.session < l.session && l.now-l.heard < l.maxAge:
		return RejectReplay
	}
	if packet, err = l.ring.verify(packet); err != nil {
		return err
	}
	body := packet[headerSize:]
	if err := l.fabric.checkEntries(body, h.count, l.hears); err != nil {
		return err
	}
	l.admit(&h)
	for len(body) > 0 {
		var c claim
		if c, body, err = nextEntry(body); err != nil {
			return err // checked before
		}
		l.take(&c)
	}
	return nil
}

// hears tells whose entries come here: an edge switch's are its servers' only.
func (l *Listener) hears(originator topology.NodeID) bool {
	return l.fabric.layer(originator) != topology.LayerEdge || originator == l.edge.Peer
}

// admit takes note of a genuine message. A session that is new frees the edge
// switch from what it has said before: its clock may have gone back, and nobody
// else can tell it so.
func (l *Listener) admit(h *header) {
	if h.session != l.session {
		l.session = h.session
		l.window = replayWindow{}
		l.db.records[l.db.index(l.edge.Peer)].version = version{}
	}
	l.window.mark(h.counter)
	l.heard = l.now
}

func (l *Listener) take(c *claim) {
	switch kind := l.db.judge(c); {
	case kind == same:
		l.stats.Repeated++
	case kind == older:
		l.stats.Older++
	case c.age >= l.maxAge:
		l.stats.Rejected.add(RejectAge)
	default:
		if kind == changed {
			l.stats.Changed++
		} else {
			l.stats.Refreshed++
		}
		l.db.store(c, l.edge.Index, l.now)
	}
}

// Tick lets go of what is too old. It is true if Topology is another one by it.
func (l *Listener) Tick(now time.Duration) (changed bool) {
	l.now = max(l.now, now)
	l.db.expire(l.now)
	return l.renew()
}

// Next returns when Tick is due. It changes with every call.
func (l *Listener) Next() time.Duration { return l.db.due }

func (l *Listener) renew() bool {
	if l.db.topology() == l.shown {
		return false
	}
	l.shown = l.db.snapshot
	l.stats.Snapshots++
	return true
}

// Topology returns the baseline without the links that are down. It is another
// one only when a link's state has changed. Immutable, to be kept freely.
func (l *Listener) Topology() *topology.Topology { return l.db.topology() }

// SetKeys replaces the keys, for instance to begin a roll-over.
func (l *Listener) SetKeys(k Keys) error {
	ring, err := newKeyring(k)
	if err == nil {
		l.ring = ring
	}
	return err
}

// Stats returns the counters.
func (l *Listener) Stats() ListenerStats { return l.stats }

// Database returns all entries that count.
func (l *Listener) Database() []Entry { return l.db.entries(l.now) }
