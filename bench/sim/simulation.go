package sim

import (
	"math/rand/v2"
	"time"

	"weft/bench/sim/aqm"
	"weft/bench/sim/spray"
	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/flowcell"
	"weft/resequencer"
	"weft/topology"
	"weft/topology/graph"
)

// simulation is a run under way. Times are in picoseconds.
type simulation struct {
	config Config
	tcp    tcp.Config
	now    int64
	ended  bool
	err    error // of the Workload; ends the run

	wheel  *wheel
	fabric fabric
	graph  *graphFabric // in place of fabric; nil: none
	ports  []port
	class  []class
	// disciplines are those of ports, by number, where a class is managed.
	disciplines []aqm.Discipline
	delay       int64

	packets  table[packet]
	dataAcks []int64 // of acknowledgements of subflows, by packet

	packetsKnown, flowsKnown ahead // what lookAhead has asked for
	sum                      int64 // of what was looked at ahead, so that it is not for nothing

	hosts     *spray.Hosts  // nil where switches choose
	switches  spray.Switch  // nil where hosts do
	unit      flowcell.Unit // what switches choose for
	meters    *spray.Meters // nil where packets do not carry Marks of hosts'
	looked    spray.Packet  // what a switch looks at
	heeds     bool          // hosts go by what is acknowledged
	capable   uint32        // flags of data: whether switches may mark them
	watched   bool          // ports look at what passes: for Marks or probes
	addresses []flowcell.Address
	hashSeed  uint64
	known     *topology.Topology // to hosts and switches
	probing   probing

	flows       table[flow]
	awaited     int              // flows that have begun, or will, and not ended
	begun       uint32           // flows
	keptOf      *keptConnections // nil: flows have connections of their own
	next        workload.Flow
	sourceEnded bool
	later       []workload.Flow
	unusedLater []uint32
	begin       func(workload.Flow)
	delivered   []int64 // since the start, by host

	resequencer *resequencer.Buffer[uint32]
	segment     flowcell.Packet
	inOrder     []uint32
	expiryAt    int64 // when an event is under way for; never: none is

	open *openLoop // nil: none

	measured
}

// measured is what is counted from Warmup on.
type measured struct {
	since                                 int64
	waits                                 [Places]*counts
	latency, rtt, resequencing            *counts
	outOfOrder                            [64]uint64
	dataPackets, ackPackets, probePackets uint64
	retransmits, timeouts, flowsEnded     uint64
	hopsBefore                            uint64
	sentBefore, deliveredBefore           []int64 // by port, by host
}

func newSimulation(c Config) (*simulation, error) {
	s := &simulation{config: c, delay: ps(c.Delay), expiryAt: never}
	if err := s.check(); err != nil {
		return nil, err
	}
	hosts := s.config.numHosts()
	s.known = s.config.Known
	for i := range s.waits {
		s.waits[i] = new(counts)
	}
	s.latency, s.rtt, s.resequencing = new(counts), new(counts), new(counts)
	if err := s.newPorts(); err != nil {
		return nil, err
	}
	s.delivered = make([]int64, hosts)
	s.sentBefore, s.deliveredBefore = make([]int64, len(s.ports)), make([]int64, hosts)
	if c.Graph != nil {
		for h := range hosts {
			s.addresses = append(s.addresses, flowcell.AddressFrom(c.Graph.Node(graph.NodeID(h)).Addresses[0]))
		}
	} else {
		s.fabric = newFabric(c.Topology)
		if err := s.fabric.checkParallel(c.Parallel); err != nil {
			return nil, err
		}
		for h := range hosts {
			s.addresses = append(s.addresses, flowcell.AddressFrom(c.Topology.Node(topology.NodeID(h)).Addr))
		}
	}
	rng := rand.New(rand.NewPCG(c.Seed, 0x73696d))
	s.hashSeed = rng.Uint64()
	if c.Graph != nil {
		s.graph = newGraphFabric(c.Graph, s.hashSeed)
	}
	if err := s.newChoice(rng.Uint64()); err != nil {
		return nil, err
	}
	s.newResequencer(rng.Uint64())
	s.newKept()
	if err := s.newOpenLoop(rng.Uint64()); err != nil {
		return nil, err
	}
	s.wheel = newWheel(min(s.shortestHop(), s.timeOf(batchEvents)))
	s.begin = s.beginLater
	return s, nil
}

// shortestHop is the least time between a packet's arrivals.
func (s *simulation) shortestHop() int64 {
	bytes := int64(s.tcp.HeaderBytes)
	if s.probing.on {
		bytes = min(bytes, spray.ProbeBytes)
	}
	if s.open != nil {
		bytes = min(bytes, int64(s.config.OpenLoop.PacketBytes))
	}
	shortest := int64(never)
	for i := range s.class {
		shortest = min(shortest, s.class[i].byteTime*bytes)
	}
	return s.delay + shortest
}

// batchEvents is how many events a slot of the wheel is to have at most: they should fit a
// processor's own cache.
const batchEvents = 2048

// timeOf is how long so many packets take at all ports together, half of them acknowledgements.
func (s *simulation) timeOf(packets int64) int64 {
	rate := 0. // packets in a picosecond
	for i := range s.ports {
		rate += 2 / float64(s.class[s.ports[i].class].byteTime*int64(s.tcp.MSS+s.tcp.HeaderBytes))
	}
	return int64(float64(packets) / rate)
}

// run simulates.
func (s *simulation) run() {
	s.wheel.push(event{at: ps(s.config.Duration), load: end})
	s.wheel.push(event{at: ps(s.config.Warmup), load: warm})
	for i, f := range s.config.Failures {
		s.wheel.push(event{at: ps(f.At), what: uint32(i), load: failure})
	}
	if s.config.OnSample != nil {
		s.wheel.push(event{at: ps(s.config.Warmup), load: look})
	}
	s.beginOpenLoop()
	s.takeNext()
	w := s.wheel
	seen, until := 0, 0 // of the batch: how far ahead memory was asked for, and when to go on with that
	for !s.ended {
		if w.at == len(w.batch) {
			if !w.advance() {
				return
			}
			seen, until = s.lookAtBatch(w.batch), 0
		}
		if w.at >= until {
			from := min(seen, len(w.batch))
			seen, until = min(from+lookahead, len(w.batch)), w.at+lookahead
			s.lookAhead(w.batch[from:seen])
		}
		e := &w.batch[w.at]
		w.at++
		if port := e.way.next(); port >= 0 { // as happen does, for speed
			s.now = e.at
			s.transmit(port, e.what, e.load, e.way.rest())
			continue
		}
		s.happen(e)
	}
}

// happen deals with an event, which must be the next one. What it pushes may move it.
func (s *simulation) happen(e *event) {
	s.now = e.at
	if port := e.way.next(); port >= 0 {
		s.transmit(port, e.what, e.load, e.way.rest())
		return
	}
	switch e.load & kinds {
	case arrived:
		s.receive(e.what, e.load)
	case undecided:
		s.choose(e.what, e.load)
	default:
		s.other(*e)
	}
}

// other deals with events that are rarer.
func (s *simulation) other(e event) {
	switch e.load & kinds {
	case timer:
		s.timer(e.what)
	case nextFlow:
		f := s.next
		s.takeNext()
		s.beginFlow(f)
	case laterFlow:
		f := s.later[e.what]
		s.unusedLater = append(s.unusedLater, e.what)
		s.beginFlow(f)
	case expiry:
		s.expire()
	case emission:
		s.emit(e.what)
	case sampling:
		s.probe()
	case failure:
		s.fail(&s.config.Failures[e.what], e.what)
	case news:
		s.learn(&s.config.Failures[e.what])
	case warm:
		s.warm()
	case look:
		s.config.OnSample(s.clock(), view{s})
		s.wheel.push(event{at: s.now + ps(s.config.SampleEvery), load: look})
	case end:
		s.ended = true
	}
}

// fails ends the run for an error.
func (s *simulation) fails(err error) { s.err, s.ended = err, true }

// clock is the time as other packages count it.
func (s *simulation) clock() time.Duration { return time.Duration(s.now / 1000) }

// ps is a time in picoseconds.
func ps(d time.Duration) int64 { return int64(d) * 1000 }
