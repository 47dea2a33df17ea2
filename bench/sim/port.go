package sim

import (
	"fmt"
	"math"
	"unsafe"

	"weft/topology"
	"weft/topology/graph"
)

// port sends what is put into it first in, first out. That one number is all of its
// queue: what arrives leaves when all before it has left. Bytes are counted as they
// leave, so of a packet on the wire only the rest counts.
type port struct {
	busy  int64 // ps: until when it sends what it has
	bytes int64 // put into it since the start
	most  int64 // the longest backlog that a packet found, in ps
	drops uint32
	class uint16
}

// class is what ports of a place and a rate have in common.
type class struct {
	byteTime int64 // ps
	limit    int64 // ps: room
	mark     int64 // ps: what finds more backlog is marked
	place    uint8
	managed  bool // ports have disciplines

	packets, drops, marks uint64
	// Of the backlog that packets find, in ps, and what they add to its integral
	// over time, in byte·ps.
	sum, squares, area float64
	waits              *counts
}

// never is a limit that nothing reaches.
const never = math.MaxInt64 / 4

// byteTime is how long a byte takes, rounded to whole picoseconds: exact for all
// rates in use up to 100 Gbit/s, and within 1 % for any up to 160 Gbit/s.
func byteTime(rateMbit float64) int64 { return max(int64(math.Round(8e6/rateMbit)), 1) }

// manyLinks is from how many links on a run is worth huge pages.
const manyLinks = 4096

// newPorts makes all ports of the fabric. A port's class is that of its link dead,
// which has no room, if the number is one more.
func (s *simulation) newPorts() error {
	t := s.config.Topology
	links := 0
	if g := s.config.Graph; g != nil {
		links = g.NumLinks()
	} else {
		links = t.NumLinks()
	}
	type key struct {
		place int
		rate  float64
	}
	known := make(map[key]uint16)
	s.ports = make([]port, 2*links)
	if links >= manyLinks {
		adviseHugePages(unsafe.Pointer(&s.ports[0]))
	}
	for i := range s.ports {
		l := topology.LinkID(i / 2)
		var k key
		if g := s.config.Graph; g != nil {
			k = key{graphPlace(g, i), g.Link(graph.LinkID(l)).Rate} // checkGraph has seen that there is one
		} else {
			k = key{place(t, i), t.Rate(l)}
		}
		if k.rate <= 0 {
			return fmt.Errorf("sim: Topology: %s has no rate; give host-rate, fabric-rate and core-rate", t.LinkName(l))
		}
		c, ok := known[k]
		if !ok {
			c = uint16(len(s.class))
			known[k] = c
			live, err := s.newClass(k.place, k.rate)
			if err != nil {
				return err
			}
			dead := live
			dead.limit = -1
			s.class = append(s.class, live, dead)
		}
		if t != nil && !t.Live(l) {
			c++
		}
		s.ports[i].class = c
		if q, ok := s.queue(k.rate); ok && q.Manage != nil && k.place != HostNIC {
			s.manage(i, k.place, q.Manage)
		}
	}
	return nil
}

func (s *simulation) newClass(place int, rate float64) (class, error) {
	c := class{byteTime: byteTime(rate), limit: never, mark: never, place: uint8(place), waits: s.waits[place]}
	if place == HostNIC {
		if n := s.config.HostQueueBytes; n > 0 {
			c.limit = int64(n) * c.byteTime
		}
		return c, nil
	}
	q, ok := s.queue(rate)
	if !ok {
		return c, fmt.Errorf("sim: Queues: none is for links of %v Mbit/s; add one, or one for all with RateMbit 0", rate)
	}
	c.limit = int64(q.Bytes) * c.byteTime
	if q.ECNBytes > 0 {
		c.mark = int64(q.ECNBytes) * c.byteTime
	}
	return c, nil
}

func (s *simulation) queue(rate float64) (other Queue, ok bool) {
	for _, q := range s.config.Queues {
		if q.RateMbit == rate {
			return q, true
		}
		if q.RateMbit == 0 {
			other, ok = q, true
		}
	}
	return other, ok
}

// transmit puts a packet into a port, from which it goes on by a way, or drops it and returns
// false.
func (s *simulation) transmit(number int32, i, load uint32, rest way) bool {
	if load&gone != 0 {
		s.discard(i)
		return false
	}
	t := &s.ports[number]
	c := &s.class[t.class]
	bytes := int64(load >> bytesShift)
	backlog := max(t.busy-s.now, 0)
	takes := bytes * c.byteTime
	if c.managed && !s.admit(number, i, &load, backlog, c) || backlog+takes > c.limit {
		s.drop(number, i)
		return false
	}
	if backlog > c.mark && load&capable != 0 {
		load |= marked
		c.marks++
	}
	wait := float64(backlog)
	c.packets++
	c.sum += wait
	c.squares += wait * wait
	c.area += float64(bytes) * (wait + float64(takes)/2)
	c.waits.add(backlog / 1000)
	t.most = max(t.most, backlog)
	if s.watched {
		s.watch(number, s.packets.at(i), backlog, c)
	}
	t.bytes += bytes
	t.busy = s.now + backlog + takes
	at := t.busy + s.delay
	e := s.wheel.place(at)
	e.at, e.what, e.load = at, i, load+onePassed
	e.way = rest
	return true
}

// queueBytes is what waits at a port now.
func (s *simulation) queueBytes(number int32) int {
	t := &s.ports[number]
	if t.busy <= s.now {
		return 0
	}
	return int((t.busy - s.now) / s.class[t.class].byteTime)
}
