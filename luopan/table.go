package luopan

import (
	"time"

	"weft/internal/bucket"
	"weft/internal/timerq"
)

const (
	// Never is what Next returns when nothing is due.
	Never = timerq.Never
	// nowhere is the place of what is in no queue, and the slot of what has none.
	nowhere = timerq.Nowhere
)

// Table is a host's congestion table. See the package. It is not safe for concurrent use.
// All times passed to it are of one clock with any origin. A time before the latest one
// counts as the latest one.
type Table struct {
	config       Config
	random       source
	slots        map[uint32]int32    // destinations by rack
	destinations []destination       // by slot
	samples      []sample            // two rounds of each slot
	free         []int32             // slots that are not in use
	due          timerq.Queue[int32] // slots
	places       []int32             // in due, by slot
	budget       bucket.Bucket
	mutes        mutes
	blocked      time.Duration // when there is budget again
	latest       int32         // the slot found last, or nowhere; flowcells come in bursts
	hand         int           // where the search for a victim goes on
	now          time.Duration // the latest time told
	stats        Stats
}

// New returns an empty Table. An error names the field that is wrong.
func New(c Config) (*Table, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return newTable(c, newSource(c.Seed)), nil
}

func newTable(c Config, random source) *Table {
	t := &Table{config: c, random: random, slots: make(map[uint32]int32), latest: nowhere,
		budget: bucket.New(c.Budget, 20*time.Millisecond).AtLeast(c.Samples)}
	t.due.Moved = func(slot, place int32) { t.places[slot] = place }
	return t
}

// dueAt has a slot due at a time, instead of when it was.
func (t *Table) dueAt(slot int32, at time.Duration) { t.due.Set(slot, t.places[slot], at) }

// destination is a rack that there is traffic to.
type destination struct {
	id    uint32
	taken bool          // the slot is in use
	used  time.Duration // the last choice

	paths []int // of the last choice; the caller's

	hosts  [maxHosts]uint32 // the latest to whom there was traffic
	known  [maxHosts]bool   // which of these have answered
	nHosts uint8
	meet   uint8 // where the next new one goes
	turn   uint8 // who is probed next

	// Two rounds: the one asked for last, and the one whose answers are used,
	// until there is a first answer to the other.
	asked, shown uint8
	n            [2]uint8      // samples of each round
	answers      [2]uint8      // how many have been answered
	kind         [2]Metric     // by which they are compared
	target       uint32        // who was probed last
	began        time.Duration // of the round asked for last
	until        time.Duration // how long the answers may be used
	past         pastProbes    // of rounds before these

	rtt, vary, least time.Duration // of the probes: smoothed, how much they differ from it, and the least

	// Of the answers in use:
	first time.Duration // when they began to come in
	next  time.Duration // when the next round is asked for
	fair  int64         // what a path has before it on average, in bytes
	loose int64         // bytes sent since by other paths
	sent  int64         // by all

	typical int64   // fair, smoothed over all rounds
	turnOf  int     // of paths: which is next of those of which nothing is known
	stride  int     // with Config.Turns: how much further the one after it is
	volume  int64   // bytes sent since the round began
	rate    float64 // of that, smoothed, in bytes per second
	share   float64 // see gauge
	shunned [maxShunned]shunned

	slow         uint8 // log2 of what expiry is in units of the round trip
	silent       uint8 // rounds without an answer in a row
	resting      bool  // nobody may be asked for now
	calm         bool  // with Config.Turns: no round until there is a choice
	hit          bool  // there was a choice since the round began
	hopeless     bool  // see adapt
	level        int64 // of the round before, see adapt
	levelKind    Metric
	choices      []uint64 // flowcells by path
	otherChoices uint64   // by paths with higher numbers
	unsampled    uint64   // of all these, those that no sample decided on
}

// sample is a path that was probed.
type sample struct {
	token    uint64
	rtt      time.Duration
	oneWay   time.Duration // by two clocks: means something only beside others
	at       time.Duration // when it was answered
	rank     int64         // how congested, in bytes; see weigh
	own      int64         // bytes that this host has sent since
	path     int32
	queue    uint8
	meters   uint8
	marked   bool
	received bool // oneWay is known
	answered bool
	live     bool
	spent    bool // with Config.Turns: the path has had its turn
}

const (
	maxHosts = 4
	// maxChoices bounds the paths whose choices are counted one by one.
	maxChoices = 64
	// victims is how many destinations an eviction chooses from.
	victims = 16
)

// round returns one of a slot's two.
func (t *Table) round(slot int32, which uint8) []sample {
	from := (2*int(slot) + int(which)) * t.config.Samples
	return t.samples[from : from+int(t.destinations[slot].n[which])]
}

func (t *Table) tell(now time.Duration) time.Duration {
	t.now = max(t.now, now)
	return t.now
}

// find returns the slot of a destination, nowhere if it has none.
func (t *Table) find(dst uint32) int32 {
	if t.latest != nowhere && t.destinations[t.latest].id == dst {
		return t.latest
	}
	slot, ok := t.slots[dst]
	if !ok {
		return nowhere
	}
	t.latest = slot
	return slot
}

// add makes a destination known.
func (t *Table) add(dst uint32, now time.Duration) int32 {
	if len(t.slots) >= t.config.MaxDestinations {
		t.evict()
	}
	var slot int32
	if n := len(t.free); n > 0 {
		slot = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		slot = int32(len(t.destinations))
		t.destinations = append(t.destinations, destination{})
		t.samples = append(t.samples, make([]sample, 2*t.config.Samples)...)
		t.places = append(t.places, nowhere)
	}
	t.destinations[slot] = destination{id: dst, taken: true, used: now, until: -1}
	t.slots[dst] = slot
	t.latest = slot
	t.dueAt(slot, now)
	return slot
}

func (t *Table) remove(slot int32) {
	delete(t.slots, t.destinations[slot].id)
	t.due.Remove(t.places[slot])
	t.destinations[slot] = destination{}
	t.free = append(t.free, slot)
	t.latest = nowhere
}

// evict forgets the idlest of the next few.
func (t *Table) evict() {
	victim := nowhere
	for seen := 0; seen < min(victims, len(t.slots)); t.hand++ {
		slot := int32(t.hand % len(t.destinations))
		d := &t.destinations[slot]
		if !d.taken {
			continue
		}
		seen++
		if victim == nowhere || d.used < t.destinations[victim].used {
			victim = slot
		}
	}
	t.remove(victim)
	t.stats.Evicted++
}
