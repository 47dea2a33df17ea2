package schedulerd

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"weft/flowcell"
	"weft/hedera"
	"weft/hedera/wire"
	"weft/topology"
)

// receiveBuffer is what the kernel is asked to hold of messages that wait, in bytes: reports
// of a second.
const receiveBuffer = 4 << 20

// server is the part that speaks with nodes.
type server struct {
	file  *File
	conn  *net.UDPConn
	start time.Time

	mu     sync.Mutex
	desk   *wire.Desk
	loop   *hedera.Loop // nil: this scheduler does not lead
	leader string
	epoch  uint64
	seen   observed
	stats  stats
}

// observed is who leads as etcd said last.
type observed struct {
	leader string
	epoch  uint64
}

// stats counts since the start.
type stats struct {
	refused    hedera.Refusals // of terms that have ended
	rounds     uint64
	terms      uint64
	deposed    uint64
	writeFails uint64
	lastError  string
	changed    uint64 // placements
	ended      uint64
	unwritten  int // now
	placed     int // now
	flows      int
	roundMS    float64
	writeMS    float64
	sendErrors uint64
}

func newServer(f *File, start time.Time) (*server, error) {
	desk, err := wire.NewDesk(wire.DeskConfig{Fabric: f.fabric.Fingerprint(), Keys: f.keys(start), Known: f.fabric.Known, Random: wire.Random})
	if err != nil {
		return nil, err
	}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(f.listen))
	if err != nil {
		return nil, f.lines.Errorf("listen", "%w", err)
	}
	conn.SetReadBuffer(receiveBuffer) // less is no fault
	return &server{file: f, conn: conn, start: start, desk: desk}, nil
}

func (s *server) now() time.Duration { return time.Since(s.start) }

// receive takes messages until the socket is closed.
func (s *server) receive() {
	buf := make([]byte, wire.MaxMessage+1)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(time.Millisecond) // an error of an earlier message of ours
			continue
		}
		s.mu.Lock()
		now := s.now()
		node, flows, err := s.desk.Receive(buf[:n], from, now, s.write)
		if err == nil && s.loop != nil {
			for _, f := range flows {
				s.loop.Report(node, f.Tuple, f.Rate, now) // it counts what it refuses
			}
		}
		s.mu.Unlock()
	}
}

// write sends a message. What the kernel does not take is lost, as in the network. mu is
// held.
func (s *server) write(to netip.AddrPort, b []byte) {
	if _, err := s.conn.WriteToUDPAddrPort(b, to); err != nil {
		s.stats.sendErrors++
	}
}

// lead begins a term, with the loop that knows what is placed, or ends it with nil.
func (s *server) lead(l *hedera.Loop, epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loop != nil {
		for i, n := range s.loop.Refused() {
			s.stats.refused[i] += n
		}
	}
	s.loop = l
	if l == nil {
		s.desk.Lead(false, netip.AddrPort{}, s.epoch)
		s.leader, s.stats.placed, s.stats.flows, s.stats.unwritten = "", 0, 0, 0
		if s.seen.epoch > s.epoch { // the next one leads already
			s.obey()
		}
		return
	}
	_ = l.SetFabric(s.file.fabric) // SIGHUP may have changed it meanwhile; it is the same fabric
	s.stats.terms++
	s.leader, s.epoch = s.file.listen.String(), epoch
	s.desk.Lead(true, s.file.listen, epoch)
}

// follow notes that another scheduler leads.
func (s *server) follow(leader string, epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = observed{leader, epoch}
	if s.loop == nil {
		s.obey()
	}
}

// obey has the observed scheduler lead. mu is held.
func (s *server) obey() {
	addr, err := netip.ParseAddrPort(s.seen.leader)
	if err != nil {
		addr = netip.AddrPort{} // somebody else's key
	}
	s.leader, s.epoch = s.seen.leader, s.seen.epoch
	s.desk.Lead(false, addr, s.epoch)
}

// round places all flows. The result is the caller's. Of ended, some have given way to another placement
// of their flow. Messages are received while it is computed.
func (s *server) round() (placed, changed, ended []hedera.Assignment) {
	begun := time.Now()
	s.mu.Lock()
	loop := s.loop
	work := loop.Begin(s.now())
	s.mu.Unlock()
	work.Compute()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := loop.Finish(work)
	s.stats.rounds++
	s.stats.roundMS = float64(time.Since(begun)) / 1e6
	s.stats.placed, s.stats.flows = len(r.Placed), r.Flows
	s.stats.changed += uint64(len(r.Changed))
	s.stats.ended += uint64(len(r.Ended))
	return r.Placed, r.Changed, append(r.Ended, r.Moved...)
}

// holding divides placements, of which it keeps the slice, into those that count still and others.
func (s *server) holding(list []hedera.Assignment) (held, gone []hedera.Assignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held = list[:0]
	now := s.now()
	for _, a := range list {
		if s.loop.Holds(a, now) {
			held = append(held, a)
		} else {
			gone = append(gone, a)
		}
	}
	return held, gone
}

// tell sends placements to the nodes whose flows they are, and to the switches behind these that
// have a choice of ports, too. Those that count no more are withdrawn.
func (s *server) tell(placed, ended []hedera.Assignment, lifetime time.Duration) {
	for node, list := range byNode(s.fabric(), placed, ended, lifetime) {
		s.mu.Lock()
		s.desk.Place(node, list, s.now(), s.write)
		s.mu.Unlock()
	}
}

// byNode lists what each node is told: first what is withdrawn, as its place may be needed. Of ended it is
// not told what is placed again by it.
func byNode(fabric hedera.Fabric, placed, ended []hedera.Assignment, lifetime time.Duration) map[netip.Addr][]wire.Placement {
	type at struct {
		node  netip.Addr
		tuple flowcell.FiveTuple
	}
	again := make(map[at]bool)
	to, withdrawn := make(map[netip.Addr][]wire.Placement), make(map[netip.Addr][]wire.Placement)
	for _, a := range placed {
		for _, node := range append(fabric.Relays(a), a.Node) {
			to[node] = append(to[node], wire.Placement{Tuple: a.Tuple, Path: a.Path, Via: a.Via, For: lifetime})
			if len(ended) > 0 {
				again[at{node, a.Tuple}] = true
			}
		}
	}
	for _, a := range ended {
		for _, node := range append(fabric.Relays(a), a.Node) {
			if !again[at{node, a.Tuple}] {
				withdrawn[node] = append(withdrawn[node], wire.Placement{Tuple: a.Tuple, Path: a.Path, Via: a.Via})
			}
		}
	}
	for node, list := range withdrawn {
		to[node] = append(list, to[node]...)
	}
	return to
}

// heard takes what the switches say: which links are down.
func (s *server) heard(t *topology.Topology) error {
	fabric, err := hedera.NewClos(t)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if fabric.Fingerprint() != s.file.fabric.Fingerprint() {
		return errFabric
	}
	if s.loop != nil {
		if err := s.loop.SetFabric(fabric); err != nil {
			return err
		}
	}
	f := *s.file
	f.fabric = fabric
	s.file = &f
	return nil
}

// fabric returns what is known of the fabric now.
func (s *server) fabric() hedera.Fabric {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.fabric
}

var errFabric = errors.New("it is of another fabric")

// renew goes on with another configuration: other keys, other links down. After an error all is as it
// was. With heardCounts the topology is the same, and what was heard of its links counts on.
func (s *server) renew(f *File, start time.Time, heardCounts bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.fabric.Fingerprint() != s.file.fabric.Fingerprint() {
		return errFabric
	}
	if err := s.desk.SetKeys(f.keys(start)); err != nil {
		return err
	}
	if heardCounts {
		f.fabric = s.file.fabric
	} else if s.loop != nil {
		if err := s.loop.SetFabric(f.fabric); err != nil {
			return err
		}
	}
	s.file = f
	return nil
}
