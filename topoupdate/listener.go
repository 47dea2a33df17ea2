package topoupdate

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"weft/topology"
)

// ListenerConfig configures a Listener.
type ListenerConfig struct {
	// Topology is the baseline. Links that are down in it stay down, whatever messages
	// say.
	Topology *topology.Topology
	Self     topology.NodeID // a host
	Keys     Keys
	MaxAge   time.Duration // that of the switches; 0: DefaultRefresh × 4

	// Sources are the addresses from which unsigned messages are accepted: those of the
	// edge switch. nil: any address. Signed messages are accepted from any address.
	Sources []netip.Addr
	// Floor is the share of the paths to every rack, rounded up, that stays in use
	// whatever unsigned messages say. 0 means DefaultFloor; 1 means that they take
	// nothing away.
	Floor float64
}

// DefaultFloor is half of the paths: a host loses as much if one of its edge switch's two
// uplinks fails. The host's own probes find further failures.
const DefaultFloor = 0.5

// Listener is a server's part of the protocol: it listens to its edge switch and never
// sends (DRB §4.3, rule 1). It is not safe for concurrent use. It begins with the
// baseline, and returns to it if nothing is heard for MaxAge.
//
// # What a replay can do
//
// A Listener does not send, so it cannot challenge a sender. It recognises a recording
// only by earlier messages: an edge switch's session and counter grow, and so do each
// originator's incarnation and sequence. After it has heard its edge switch once, it
// accepts no recording of anything earlier, until the switch has been silent for MaxAge.
// Then it accepts an older session, since the switch may have lost its clock. A Listener
// that has just started and has heard nothing takes a recording for news. The sender must
// reach it with a TTL of 255, so it is on the Listener's own cable. For every originator
// that is alive, the false news ends with that switch's next entry: at most Repeat later
// if it reports something down, at most Refresh later if not. For an originator that is
// not alive it ends after MaxAge, since a message says how old its entries were when it
// was made. A replay can only report links down that were once down.
//
// # What unsigned messages can do
//
// Without keys an attacker on the cable, or on a shared segment, needs no recording: an
// address can be forged. So unsigned messages take away no more than Floor allows; Held
// counts the other links that they claim. A forger can also keep news from a host, by
// higher numbers than the switches'. The host's own probes (package liveness) then find
// the failures. If some messages are signed (Keys.AcceptUnsigned), unsigned ones are
// refused until MaxAge after the last signed one.
type Listener struct {
	fabric *fabric
	ring   *Keyring
	db     *database
	maxAge time.Duration
	edge   topology.Port // the host's only one; its peer is the edge switch

	now     time.Duration
	sources []netip.Addr
	floor   *floor

	session uint64        // the edge switch's; 0: not heard yet
	signed  bool          // the session is a signed message's
	heard   time.Duration // the latest message that was believed
	ever    bool          // one was
	latest  Reject        // why the latest was not that was not
	window  ReplayWindow
	told    *topology.Topology // by everybody, of what the floor has been told
	shown   *topology.Topology // to whom asked last
	vouched []topology.LinkID  // links of which another kind of message speaks than before
	stats   ListenerStats
}

// ListenerStats counts what a Listener has heard.
type ListenerStats struct {
	Received  uint64 // messages, rejected ones included
	Rejected  Rejects
	Changed   uint64 // entries with news
	Refreshed uint64 // newer entries without news
	Repeated  uint64 // entries that were known already
	Older     uint64 // entries older than the known ones
	Snapshots uint64 // topologies made
}

// NewListener returns a Listener that has heard nothing.
func NewListener(c ListenerConfig) (*Listener, error) {
	setDefault(&c.MaxAge, defaultAges*DefaultRefresh)
	setDefault(&c.Floor, DefaultFloor)
	switch {
	case c.Topology == nil:
		return nil, errors.New("topoupdate: ListenerConfig.Topology is missing: give the baseline")
	case c.MaxAge < 0:
		return nil, fmt.Errorf("topoupdate: ListenerConfig.MaxAge is %v: give what the switches have", c.MaxAge)
	}
	if !(c.Floor > 0 && c.Floor <= 1) {
		return nil, fmt.Errorf("topoupdate: ListenerConfig.Floor is %v: give a part above 0, up to 1", c.Floor)
	}
	f, err := newFabric(c.Topology)
	if err != nil {
		return nil, err
	}
	if !c.Topology.Valid(c.Self) || f.isSwitch(c.Self) {
		return nil, fmt.Errorf("topoupdate: ListenerConfig.Self is %d, which is no host of %s", c.Self, c.Topology)
	}
	ring, err := NewKeyring(c.Keys)
	if err != nil {
		return nil, fmt.Errorf("topoupdate: ListenerConfig.%w", err)
	}
	return &Listener{
		fabric: f, ring: ring, db: newDatabase(f, c.MaxAge), maxAge: c.MaxAge,
		edge: c.Topology.Ports(c.Self)[0], sources: slices.Clone(c.Sources), floor: newFloor(f, c.Self, c.Floor),
		told: f.Topology, shown: f.Topology,
	}, nil
}

// Receive takes a message, any bytes, and its source address. It keeps none of the bytes.
// changed says whether the message has changed Topology.
func (l *Listener) Receive(packet []byte, from netip.Addr, now time.Duration) (changed bool) {
	l.now = max(l.now, now)
	l.stats.Received++
	if err := l.receive(packet, from); err != nil {
		l.stats.Rejected.add(err)
		if why, ok := err.(Reject); ok {
			l.latest = why
		}
	}
	return l.renew()
}

func (l *Listener) receive(packet []byte, from netip.Addr) error {
	h, err := parseHeader(packet, l.fabric.fingerprint)
	switch {
	case err != nil:
		return err
	case h.kind != typeUpdate:
		return RejectType
	case h.sender != l.edge.Peer || h.senderPort != l.edge.PeerPort:
		return RejectSender
	}
	signed := l.ring.Signs(packet)
	switch old := l.now-l.heard >= l.maxAge; {
	case !signed && len(l.sources) > 0 && !slices.Contains(l.sources, from):
		return RejectSource
	case signed && !l.signed:
		// What others may have said of its numbers counts for nothing.
	case !signed && l.signed && !old:
		return RejectKey
	case h.session == l.session && !l.window.Fresh(h.counter), h.session < l.session && !old:
		return RejectReplay
	}
	if packet, err = l.ring.Verify(packet); err != nil {
		return err
	}
	body := packet[headerSize:]
	if err := l.fabric.checkEntries(body, h.count, l.hears); err != nil {
		return err
	}
	l.admit(&h, signed)
	for len(body) > 0 {
		var c claim
		if c, body, err = nextEntry(body); err != nil {
			return err // checked before
		}
		l.take(&c, signed)
	}
	return nil
}

// hears tells whose entries come here: an edge switch's are its servers' only.
func (l *Listener) hears(originator topology.NodeID) bool {
	return l.fabric.layer(originator) != topology.LayerEdge || originator == l.edge.Peer
}

// admit records a genuine message. A new session discards the edge switch's
// former entry: its clock may have gone back, and nobody else can tell it so.
func (l *Listener) admit(h *header, signed bool) {
	if signed && !l.signed {
		// Nobody could vouch for what has been heard so far.
		for i := range l.db.records {
			l.db.records[i].version = version{}
		}
	}
	if h.session != l.session || signed != l.signed {
		l.session, l.signed = h.session, signed
		l.window = ReplayWindow{}
		l.db.records[l.db.index(l.edge.Peer)].version = version{}
	}
	l.window.Mark(h.counter)
	l.heard, l.ever = l.now, true
}

func (l *Listener) take(c *claim, signed bool) {
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
		l.vouch(c.originator, signed)
	}
}

// vouch notes whether what a switch says was signed. The floor looks again at its
// links if that is news.
func (l *Listener) vouch(originator topology.NodeID, signed bool) {
	r := &l.db.records[l.db.index(originator)]
	if r.signed == signed {
		return
	}
	r.signed = signed
	for _, p := range l.fabric.Ports(originator) {
		l.vouched = append(l.vouched, p.Link)
	}
}

// Tick discards entries that are too old. It returns true if that has changed Topology.
func (l *Listener) Tick(now time.Duration) (changed bool) {
	l.now = max(l.now, now)
	l.db.expire(l.now)
	return l.renew()
}

// Next returns when Tick is due. It changes with every call.
func (l *Listener) Next() time.Duration { return l.db.due }

// renew has the floor judge what has changed.
func (l *Listener) renew() bool {
	now := l.db.topology()
	if now == l.told && len(l.vouched) == 0 && l.floor.again == 0 {
		return false
	}
	changed, _ := l.told.Diff(now)
	l.told = now
	changed = append(changed, l.vouched...)
	l.vouched = l.vouched[:0]
	for _, id := range changed { // first what makes room
		l.floor.withdraw(id)
	}
	down := l.floor.retry(nil)
	var up []topology.LinkID
	for _, id := range changed {
		switch {
		case !l.fabric.Live(id):
			continue // in the baseline
		case now.Live(id):
		case l.signs(id):
			l.floor.force(id)
		default:
			l.floor.claim(id)
		}
		if l.floor.taken[id] {
			down = append(down, id)
		} else {
			up = append(up, id)
		}
	}
	next := l.shown.With(up...).Without(down...)
	if next == l.shown {
		return false
	}
	l.shown = next
	l.stats.Snapshots++
	return true
}

// signs reports whether a link is down by what was signed.
func (l *Listener) signs(id topology.LinkID) bool {
	k := l.fabric.Link(id)
	return l.db.signed(k.A, k.PortA) || l.db.signed(k.B, k.PortB)
}

// Topology returns the baseline without the links that are down. The pointer changes only
// when a link's state has changed. The caller may keep it; it is immutable.
func (l *Listener) Topology() *topology.Topology { return l.shown }

// Held returns how many links the floor keeps in use although unsigned messages report them
// down.
func (l *Listener) Held() int { return len(l.floor.held) }

// Signed reports whether every message must be signed, and whether the last one heard was.
func (l *Listener) Signed() (demanded, heard bool) {
	return len(l.ring.keys) > 0 && !l.ring.acceptUnsigned, l.signed
}

// SetKeys replaces the keys, for example to start a change of keys.
func (l *Listener) SetKeys(k Keys) error {
	ring, err := NewKeyring(k)
	if err == nil {
		l.ring = ring
	}
	return err
}

// Refused reports whether messages were rejected and none was believed: never, or not for
// MaxAge. why is the reason for the latest rejection.
func (l *Listener) Refused() (why Reject, refused bool) {
	return l.latest, l.stats.Rejected.Total() > 0 && (!l.ever || l.now-l.heard >= l.maxAge)
}

// Stats returns the counters.
func (l *Listener) Stats() ListenerStats { return l.stats }

// Database returns all valid entries.
func (l *Listener) Database() []Entry { return l.db.entries(l.now) }
