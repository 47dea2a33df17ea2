package topoupdate

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"weft/topology"
)

// never is when nothing is due.
const never = time.Duration(math.MaxInt64)

// tombstoneAges is how many times MaxAge a silent switch is remembered, so that none of its
// old entries comes back. It is bounded, since a switch may have lost its clock.
const tombstoneAges = 10

// status is what a database has about a switch.
type status uint8

const (
	unknown   status = iota
	live             // what it says counts
	tombstone        // what it said is too old to count, but nothing older will
)

// record is the newest entry of one switch. The ports that it reports down are in
// the database's bits.
type record struct {
	version
	born   time.Duration // when the entry was made, on our clock
	from   int32         // the port on which it came; Own
	status status
	signed bool // a Listener's: the message was
}

// database holds the newest entry of every switch, one record each. It derives
// from them which links are down: those that either end reports.
type database struct {
	fabric  *fabric
	maxAge  time.Duration
	records []record
	down    []uint64 // fabric.words per switch: its ports that it says are down
	// due is when the next record may expire; refreshed ones expire later.
	due      time.Duration
	snapshot *topology.Topology
	dirty    []topology.LinkID // about which somebody has said something else since snapshot
}

// maxDirty bounds database.dirty; more are applied at once.
const maxDirty = 1024

func newDatabase(f *fabric, maxAge time.Duration) *database {
	return &database{
		fabric:   f,
		maxAge:   maxAge,
		records:  make([]record, f.numSwitches()),
		down:     make([]uint64, f.numSwitches()*f.words),
		due:      never,
		snapshot: f.Topology,
	}
}

func (d *database) index(id topology.NodeID) int { return int(id) - d.fabric.NumHosts() }

func (d *database) id(index int) topology.NodeID {
	return topology.NodeID(index + d.fabric.NumHosts())
}

func (d *database) bits(index int) []uint64 {
	w := d.fabric.words
	return d.down[index*w : index*w+w : index*w+w]
}

// news is what an entry is to a database.
type news uint8

const (
	older   news = iota // than what is known
	same                // as what is known
	fresh               // a newer version that says the same
	changed             // a newer version that says something else
)

// judge tells what a checked claim would be.
func (d *database) judge(c *claim) news {
	i := d.index(c.originator)
	r := &d.records[i]
	if r.status != unknown {
		switch order := c.compare(r.version); {
		case order < 0:
			return older
		case order == 0:
			return same
		}
	}
	if d.says(i, c.bitmap) {
		return fresh
	}
	return changed
}

// says reports whether a bitmap is what is known of a switch.
func (d *database) says(index int, bitmap []byte) bool {
	for w, old := range d.bits(index) {
		if word(bitmap, w) != old {
			return false
		}
	}
	return true
}

// word returns bits 64w to 64w+63 of a bitmap.
func word(bitmap []byte, w int) (v uint64) {
	for i := 8 * w; i < min(8*w+8, len(bitmap)); i++ {
		v |= uint64(bitmap[i]) << (8 * (i - 8*w))
	}
	return v
}

// store puts a claim in the place of what was known.
func (d *database) store(c *claim, from int, now time.Duration) {
	i := d.index(c.originator)
	d.records[i] = record{c.version, now - c.age, int32(from), live, d.records[i].signed}
	d.due = min(d.due, now-c.age+d.maxAge)
	for w := range d.fabric.words {
		d.set(i, w, word(c.bitmap, w))
	}
}

// set replaces one word of what a switch says.
func (d *database) set(index, w int, to uint64) {
	bitsOf := d.bits(index)
	diff := bitsOf[w] ^ to
	if diff == 0 {
		return
	}
	bitsOf[w] = to
	ports := d.fabric.Ports(d.id(index))
	for ; diff != 0; diff &= diff - 1 {
		d.dirty = append(d.dirty, ports[64*w+bits.TrailingZeros64(diff)].Link)
	}
	if len(d.dirty) > maxDirty {
		d.topology()
	}
}

// expire drops what has not been refreshed.
func (d *database) expire(now time.Duration) {
	if now < d.due {
		return
	}
	d.due = never
	for i := range d.records {
		r := &d.records[i]
		if r.from == Own && r.status == live {
			continue
		}
		if r.status == live && now >= r.born+d.maxAge {
			r.status = tombstone
			for w := range d.fabric.words {
				d.set(i, w, 0)
			}
		}
		if r.status == tombstone && now >= r.born+tombstoneAges*d.maxAge {
			r.status = unknown
		}
		switch r.status {
		case live:
			d.due = min(d.due, r.born+d.maxAge)
		case tombstone:
			d.due = min(d.due, r.born+tombstoneAges*d.maxAge)
		}
	}
}

// claimed reports whether one end of a link says that it is down.
func (d *database) claimed(node topology.NodeID, port int) bool {
	i := d.index(node)
	return i >= 0 && d.down[i*d.fabric.words+port/64]&(1<<(port%64)) != 0
}

// signed reports whether one end of a link says so in a signed message.
func (d *database) signed(node topology.NodeID, port int) bool {
	return d.claimed(node, port) && d.records[d.index(node)].signed
}

// topology returns the baseline without the links reported down. It returns the
// same value while no link's state changes. Otherwise its cost grows with what
// has changed, plus a bit set.
func (d *database) topology() *topology.Topology {
	if len(d.dirty) == 0 {
		return d.snapshot
	}
	slices.Sort(d.dirty)
	var up, down []topology.LinkID
	for _, id := range slices.Compact(d.dirty) {
		l := d.fabric.Link(id)
		dead := d.claimed(l.A, l.PortA) || d.claimed(l.B, l.PortB) || !d.fabric.Live(id)
		switch {
		case dead && d.snapshot.Live(id):
			down = append(down, id)
		case !dead && !d.snapshot.Live(id):
			up = append(up, id)
		}
	}
	d.dirty = d.dirty[:0]
	if len(up) > 0 {
		d.snapshot = d.snapshot.With(up...)
	}
	if len(down) > 0 {
		d.snapshot = d.snapshot.Without(down...)
	}
	return d.snapshot
}

// appendClaim appends a switch's record as an entry. The ports to servers are
// not told.
func (d *database) appendClaim(b []byte, index int, now time.Duration, scratch []uint64) []byte {
	r := &d.records[index]
	copy(scratch, d.bits(index))
	if d.fabric.layer(d.id(index)) == topology.LayerEdge {
		for w := range scratch {
			switch n := d.fabric.hostPorts - 64*w; {
			case n >= 64:
				scratch[w] = 0
			case n > 0:
				scratch[w] &^= 1<<n - 1
			}
		}
	}
	return appendEntry(b, d.id(index), r.version, now-r.born, scratch)
}

// entries returns what is known and counts.
func (d *database) entries(now time.Duration) []Entry {
	var list []Entry
	for i, r := range d.records {
		if r.status != live {
			continue
		}
		e := Entry{
			Originator: d.id(i), Incarnation: r.incarnation, Sequence: r.sequence,
			Age: now - r.born, From: int(r.from),
		}
		bitset(d.bits(i)).each(func(p int) bool {
			e.Down = append(e.Down, p)
			return true
		})
		list = append(list, e)
	}
	return list
}
