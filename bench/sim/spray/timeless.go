package spray

import (
	"slices"
	"time"

	"weft/topology"
)

// timeless is Luopan in racks' switches, as in the paper (Luopan §3), except that a
// sample takes no capacity, and just the time that it is told: none by default. Then a
// sample is never older than its expiry. This cannot be built; it shows the effect of the
// age of real samples.
//
// With an age, a round comes into use when it is as old, and the next one is drawn an
// expiry later. Until that is in use the round before is. So the samples in use are from
// one age to two ages and an expiry old. Rounds follow each other from a rack's first
// flowcell to another on; that flowcell takes a random path (Luopan §3.2).
//
// The edge switch chooses when a flowcell's first packet comes in, behind the host's own
// queue. The aggregation switch follows the packet's Tag. A pair may have up to 32,767
// paths.
type timeless struct {
	oblivious
	queues  Queues
	samples int
	expiry  time.Duration
	age     time.Duration // when a round comes into use
	cells   cellTables
	tables  [][]sampledPath // by the racks of source and destination; nil until needed
	rounds  []fifo          // by the rack of the source: those to come; only with an age
	drawn   []int
}

// maxDraws is how often a path is drawn again that the round has already.
const maxDraws = 64

// sampledPath is the least congested path of a round, which is over at until.
type sampledPath struct {
	until time.Duration
	path  int16
	// With an age, the round that comes into use at ready.
	ready time.Duration
	next  int16
}

// fifo is the racks whose next round is to be drawn, and when. All rounds last equally
// long, so the first to come is the first to go.
type fifo struct {
	list []dueRound
	head int
}

type dueRound struct {
	at   time.Duration
	rack int32
}

func (f *fifo) push(r dueRound) {
	if f.head > len(f.list)/2 {
		f.list = f.list[:copy(f.list, f.list[f.head:])]
		f.head = 0
	}
	f.list = append(f.list, r)
}

// pop returns the first that is due, if there is one.
func (f *fifo) pop(now time.Duration) (r dueRound, ok bool) {
	if f.head == len(f.list) || f.list[f.head].at > now {
		return r, false
	}
	f.head++
	return f.list[f.head-1], true
}

func newTimeless(c SwitchConfig, o oblivious, q Queues) *timeless {
	return &timeless{
		oblivious: o, queues: q, samples: c.Samples, expiry: c.Expiry, age: c.SampleAge,
		cells: newCellTables(&o.shape, c.FlowcellBytes), tables: make([][]sampledPath, o.shape.racks),
		rounds: make([]fifo, o.shape.racks),
	}
}

func (s *timeless) Up(sw topology.NodeID, _ int32, p *Packet, now time.Duration) int {
	if !s.shape.isEdge(sw) {
		return int(p.Mark.Tag)
	}
	if s.age > 0 {
		s.advance(sw, now)
	}
	e, begins := s.cells.of(sw, p, now)
	if begins || !s.live(sw, p, int(e.port)) {
		s.cells.begin(e, p, s.choose(sw, p, now))
	}
	if e.port < 0 {
		return -1
	}
	up, core := s.digits(int(e.port))
	p.Mark.Tag = uint8(core)
	return up
}

// choose is a flowcell's path, a number as in package topology, of the round under
// way or of a new one; -1: there is none.
func (s *timeless) choose(sw topology.NodeID, p *Packet, now time.Duration) int16 {
	from, to := s.shape.rack(p.Src), s.shape.rack(p.Dst)
	if s.tables[from] == nil {
		s.tables[from] = make([]sampledPath, s.shape.racks)
	}
	t := &s.tables[from][to]
	if s.age > 0 {
		return s.aged(t, sw, p, now)
	}
	if now >= t.until || !s.live(sw, p, int(t.path)) {
		*t = sampledPath{until: now + s.expiry, path: int16(s.best(sw, p))}
	}
	return t.path
}

// aged is choose for samples that have an age.
func (s *timeless) aged(t *sampledPath, sw topology.NodeID, p *Packet, now time.Duration) int16 {
	if t.ready == 0 { // the first
		t.path = -1
		s.begin(t, sw, p, now)
	}
	t.use(now)
	if !s.live(sw, p, int(t.path)) {
		return int16(s.draw(sw, p))
	}
	return t.path
}

// begin draws a round that comes into use an age from now.
func (s *timeless) begin(t *sampledPath, sw topology.NodeID, p *Packet, now time.Duration) {
	t.next, t.ready = int16(s.best(sw, p)), now+s.age
	s.rounds[sw-s.shape.edge].push(dueRound{t.ready + s.expiry, int32(s.shape.rack(p.Dst))})
}

// use has a round that is ready replace the one before.
func (t *sampledPath) use(now time.Duration) {
	if now >= t.ready {
		t.path = t.next
	}
}

// advance draws the rounds of a rack that are due. Packets come up so often that it is
// next to no time late.
func (s *timeless) advance(sw topology.NodeID, now time.Duration) {
	from := int(sw - s.shape.edge)
	for {
		r, ok := s.rounds[from].pop(now)
		if !ok {
			return
		}
		t := &s.tables[from][r.rack]
		t.use(now)
		s.begin(t, sw, &Packet{Src: s.first(from), Dst: s.first(int(r.rack))}, now)
	}
}

// first is the first host of a rack.
func (s *timeless) first(rack int) topology.NodeID { return topology.NodeID(rack * s.shape.perRack) }

// best draws a round and returns the path with the least queues, counted as probes
// count them, the first drawn of equals; -1: there is none.
func (s *timeless) best(sw topology.NodeID, p *Packet) int {
	best, least := -1, maxQueue+1
	s.drawn = s.drawn[:0]
	for range s.samples {
		path := s.draw(sw, p)
		for try := 0; try < maxDraws && slices.Contains(s.drawn, path); try++ {
			path = s.draw(sw, p)
		}
		if path < 0 {
			return -1
		}
		s.drawn = append(s.drawn, path)
		if q := s.queue(p, path); q < least {
			best, least = path, q
		}
	}
	return best
}

// draw is a random path: a random port up, and another.
func (s *timeless) draw(sw topology.NodeID, p *Packet) int {
	ports := s.of(sw, p)
	if len(ports) == 0 {
		return -1
	}
	up, core := ports[s.below(len(ports))], 0
	if agg := s.shape.aggOf(sw, up); !s.samePod(p) {
		cores := s.of(agg, p)
		core = cores[s.below(len(cores))]
	}
	return up*max(s.shape.cores, 1) + core
}

// live reports whether a packet may take a path.
func (s *timeless) live(sw topology.NodeID, p *Packet, path int) bool {
	if path < 0 {
		return false
	}
	up, core := s.digits(path)
	return slices.Contains(s.of(sw, p), up) && (s.samePod(p) || slices.Contains(s.of(s.shape.aggOf(sw, up), p), core))
}

// digits are the ports up of a path.
func (s *timeless) digits(path int) (up, core int) {
	n := max(s.shape.cores, 1)
	return path / n, path % n
}

func (s *timeless) samePod(p *Packet) bool {
	return s.shape.rack(p.Src)/s.shape.podRack == s.shape.rack(p.Dst)/s.shape.podRack
}

// queue is the sum of the queues of a path between two racks, in QueueUnit, rounded
// down at each port.
func (s *timeless) queue(p *Packet, path int) int {
	up, core := s.digits(path)
	from, to := s.shape.edgeOf(p.Src), s.shape.edgeOf(p.Dst)
	sum := s.units(upPort(s.shape.uplink(from)+topology.LinkID(up))) + s.units(downPort(s.shape.uplink(to)+topology.LinkID(up)))
	if !s.samePod(p) {
		sum += s.units(upPort(s.shape.uplink(s.shape.aggOf(from, up)) + topology.LinkID(core)))
		sum += s.units(downPort(s.shape.uplink(s.shape.aggOf(to, up)) + topology.LinkID(core)))
	}
	return min(sum, maxQueue)
}

func (s *timeless) units(port int32) int { return s.queues.QueueBytes(port) / QueueUnit }
