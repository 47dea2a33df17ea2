package fluid

import (
	"errors"
	"math"
	"time"

	"weft/bench/sim/workload"
	"weft/hedera"
)

// Config is one run with max-min fair rates. Times are simulated.
type Config struct {
	Fabric    *Fabric
	Workload  workload.Source
	Scheduler Scheduler
	// Period is the time between two calls of the Scheduler's Round, First the time of
	// the first call. Period 0: never.
	Period, First time.Duration
	// Duration is how long the run takes, or less if no flow is left. Bytes delivered
	// before Warmup do not count.
	Duration, Warmup time.Duration
	// Contended is the part of its capacity that a full port gives to flows if several pass
	// through it, such as TCP's that lose their windows there and wait; 0: all of it. All rates
	// are then computed with each event, which is for few flows.
	Contended float64
}

// Result is the result of a run.
type Result struct {
	Mbit  float64       // delivered per second between Warmup and the end, to all hosts
	End   time.Duration // of the run
	Flows int           // ended
	Mean  time.Duration // completion time of those
}

// Run simulates. The same Config gives the same Result.
func Run(c Config) (*Result, error) {
	switch {
	case c.Fabric == nil || c.Workload == nil || c.Scheduler == nil:
		return nil, errors.New("fluid: Config.Fabric, Workload and Scheduler must all be given")
	case c.Duration <= 0 || c.Warmup < 0 || c.Warmup >= c.Duration:
		return nil, errors.New("fluid: Config.Duration must be above 0, and Warmup from 0 to less than that")
	case c.Period < 0 || c.First < 0:
		return nil, errors.New("fluid: Config.Period and First must be 0 or more")
	case !(c.Contended >= 0 && c.Contended <= 1):
		return nil, errors.New("fluid: Config.Contended must be from 0 to 1")
	}
	s := &simulation{Config: c, net: newNetwork(c.Fabric.Capacity())}
	return s.run(), nil
}

const never = time.Duration(math.MaxInt64)

type simulation struct {
	Config
	net *network
	now time.Duration

	next  workload.Flow // of the Workload's own
	some  bool
	later arrivals // what Done has begun

	flows []*active // by flowID
	under int
	nth   uint64
	ends  heap

	transfers []*Transfer // for a Round
	moving    []flowID

	delivered float64 // bytes
	spent     time.Duration
	result    Result
}

// active is a flow under way.
type active struct {
	Transfer
	flow    workload.Flow
	id      flowID
	under   bool
	rate    float64
	left    float64       // bytes, at since
	since   time.Duration // when the rate changed last
	version uint32        // of its item in ends
}

func (s *simulation) run() *Result {
	s.next, s.some = s.Workload.Next()
	round := never
	if s.Period > 0 {
		round = s.First
	}
	for {
		at := min(s.nextEnd(), s.nextArrival())
		if at == never && s.under == 0 {
			break // nothing will happen any more
		}
		if at = min(at, round); at >= s.Duration {
			s.now = s.Duration
			break
		}
		s.now = at
		s.end()
		s.begin()
		if at == round {
			s.round()
			round += s.Period
		}
		s.settle()
	}
	for _, f := range s.flows {
		if f.under {
			s.account(f)
		}
	}
	s.result.End = s.now
	if over := s.now - s.Warmup; over > 0 {
		s.result.Mbit = s.delivered * 8000 / float64(over)
	}
	if s.result.Flows > 0 {
		s.result.Mean = s.spent / time.Duration(s.result.Flows)
	}
	return &s.result
}

func (s *simulation) nextEnd() time.Duration {
	for s.ends.len() > 0 && !s.valid(s.ends.items[0]) {
		s.ends.pop()
	}
	if s.ends.len() == 0 {
		return never
	}
	return time.Duration(s.ends.items[0].key)
}

func (s *simulation) valid(x item) bool {
	f := s.flows[x.id]
	return f.under && f.version == x.version
}

// end has flows end that are due.
func (s *simulation) end() {
	for s.nextEnd() <= s.now {
		f := s.flows[s.ends.pop().id]
		s.account(f)
		f.under = false
		s.under--
		s.net.remove(f.id)
		s.Scheduler.End(&f.Transfer)
		s.result.Flows++
		s.spent += s.now - f.flow.Start
		s.Workload.Done(f.flow, s.now, s.later.add)
	}
}

func (s *simulation) nextArrival() time.Duration {
	at := s.later.next()
	if s.some {
		at = min(at, max(s.next.Start, s.now))
	}
	return at
}

// begin has flows begin that are due.
func (s *simulation) begin() {
	for s.some && s.next.Start <= s.now {
		s.start(s.next)
		s.next, s.some = s.Workload.Next()
	}
	for s.later.next() <= s.now {
		s.start(s.later.pop())
	}
}

func (s *simulation) start(w workload.Flow) {
	t := Transfer{Flow: hedera.Flow{Pair: Pair{Src: w.Src, Dst: w.Dst}}, Nth: s.nth}
	s.nth++
	s.Scheduler.Begin(&t)
	id := s.net.add(s.Fabric.Route(w.Src, w.Dst, t.Path))
	if int(id) == len(s.flows) {
		s.flows = append(s.flows, &active{})
	}
	f := s.flows[id]
	*f = active{Transfer: t, flow: w, id: id, under: true, left: float64(w.Bytes), since: s.now, version: f.version + 1}
	s.under++
}

// round asks the Scheduler for better paths.
func (s *simulation) round() {
	s.transfers, s.moving = s.transfers[:0], s.moving[:0]
	for id, f := range s.flows {
		if f.under {
			s.transfers = append(s.transfers, &f.Transfer)
			s.moving = append(s.moving, flowID(id))
		}
	}
	was := make([]int, len(s.transfers))
	for i, t := range s.transfers {
		was[i] = t.Path
	}
	s.Scheduler.Round(s.transfers)
	for i, t := range s.transfers {
		if t.Path != was[i] {
			s.net.reroute(s.moving[i], s.Fabric.Route(t.Src, t.Dst, t.Path))
		}
	}
}

// settle has all flows go on at what are now their rates.
func (s *simulation) settle() {
	if s.Contended > 0 {
		s.settleContended()
	} else {
		for _, id := range s.net.settle() {
			s.goOn(s.flows[id], s.net.rate(id))
		}
	}
	if s.ends.len() > 64+4*s.under {
		s.ends.keep(s.valid)
	}
}

// goOn has a flow go on at a rate.
func (s *simulation) goOn(f *active, rate float64) {
	s.account(f)
	f.rate = rate
	f.version++
	if f.flow.Bytes > 0 && f.rate > 0 {
		s.ends.push(item{key: float64(s.now) + math.Ceil(max(0, f.left)*8000/f.rate), id: int32(f.id), version: f.version})
	}
}

// account brings what a flow has sent up to now.
func (s *simulation) account(f *active) {
	f.left -= f.rate * float64(s.now-f.since) / 8000
	if from := max(f.since, s.Warmup); from < s.now {
		s.delivered += f.rate * float64(s.now-from) / 8000
	}
	f.since = s.now
}
