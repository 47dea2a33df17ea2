package fct

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"weft/bench/sim"
	"weft/bench/sim/spray"
	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/topology"
)

// What the simulator is told of a lab: its ports' queues (lab.Config.QueueBytes), and the
// kernel's TCP.
const (
	simQueueBytes = 75_000
	simRTOMin     = 200 * time.Millisecond // Linux's TCP_RTO_MIN
	simRTOInitial = time.Second            // RFC 6298
	simWindow     = 1 << 20                // larger than what the queues of a path hold
)

// DefaultDelay is of a link and the node behind it, where no lab has been measured.
const DefaultDelay = 25 * time.Microsecond

// CanSimulate says why none of the rows can be simulated, nil if one can.
func CanSimulate(rows []Row) error {
	var all []string
	for _, r := range rows {
		_, err := modelOf(r)
		if err == nil {
			return nil
		}
		all = append(all, fmt.Sprintf("%s: %v", r.Name, err))
	}
	return fmt.Errorf("none of the rows can be simulated: %s", strings.Join(all, "; "))
}

// Simulate measures the rows in the packet-level simulator: the same flows on links of the
// same rates and queues. All rows' slowdowns divide by what the lab of idle took, so that they
// compare with those of Run; without a lab, by what the simulator takes for the kernel's TCP. Rows
// of which there is no model are left out and noted.
func Simulate(ctx context.Context, o Options, idle Idle) ([]Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	real, known, err := o.WithFailure()
	if err != nil {
		return nil, err
	}
	if real, err = withRates(real, o.RateMbit); err != nil {
		return nil, err
	}
	if known, err = withRates(known, o.RateMbit); err != nil {
		return nil, err
	}
	whole, err := withRates(o.Topology, o.RateMbit)
	if err != nil {
		return nil, err
	}
	s := &simulator{Options: &o, real: real, known: known, whole: whole, idle: idle, runs: make(map[cell][]run)}
	var rows []Row
	for _, row := range o.Rows {
		m, err := modelOf(row)
		if err == nil {
			err = s.row(ctx, row, m, len(rows))
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			o.note("%s is not simulated: %v", row.Name, err)
			continue
		}
		rows = append(rows, row)
	}
	if o.Rows = rows; len(rows) == 0 {
		return nil, errors.New("none of the rows can be simulated")
	}
	base := simBase
	if idle.lab != nil {
		base = idle.lab.base
	}
	return o.results(InSimulator, s.runs, nil, base, s.alone(0, topology.NodeID(o.Topology.NumHosts()-1), 1)), nil
}

// simulator is a call of Simulate.
type simulator struct {
	*Options
	real, known *topology.Topology // all of their links have rates
	whole       *topology.Topology // the same without the failure
	idle        Idle
	runs        map[cell][]run
	done        int // runs
}

// row simulates a row under all loads, in all rounds.
func (s *simulator) row(ctx context.Context, row Row, m model, number int) error {
	for i, load := range s.Loads {
		var runs []run
		for round := range s.Seeds {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if s.Progress != nil {
				s.Progress(row.Name+", simulated", s.done, len(s.Rows)*len(s.Loads)*s.Seeds)
			}
			s.done++
			seed := s.Seed + uint64(round)
			p, err := s.plan(load, seed)
			if err != nil {
				return err
			}
			r, err := s.play(p, row, m, seed)
			if err != nil {
				return err
			}
			runs = append(runs, r)
		}
		s.runs[cell{number, i}] = runs
	}
	return nil
}

// play simulates the flows of a run.
func (s *simulator) play(p plan, row Row, m model, seed uint64) (r run, err error) {
	end := s.Duration + s.Drain
	all := make([]outcome, len(p.flows))
	source := newScheduled(&p)
	c := s.config(row, m, seed)
	c.Duration, c.Workload = end, source
	c.OnFlow = func(e sim.FlowEnd) {
		f := p.flows[e.Job]
		all[e.Job].finished = true
		all[e.Job].took = e.FCT + s.answer(m, f.Src, f.Dst)
	}
	if _, err := sim.Run(c); err != nil {
		return r, err
	}
	for i := range all {
		o := &all[i]
		if o.began, o.begun = source.began[i], source.begun[i]; o.begun && !o.finished {
			o.took = end - o.began
		}
	}
	r.samples, r.jobs = p.samples(all, s.alone)
	r.idle = -1
	return r, nil
}

// config is a run without flows.
func (s *simulator) config(row Row, m model, seed uint64) sim.Config {
	c := sim.Config{
		Topology: s.real, Known: s.known, Seed: seed, Delay: s.idle.Delay,
		Policy: m.policy, Options: s.Policy,
		TCP: tcp.Config{MSS: m.mss, HeaderBytes: m.header, WindowBytes: simWindow, RTOMin: simRTOMin, RTOInitial: simRTOInitial,
			DCTCP: row.MarkBytes > 0, Handshake: true, Timestamps: true}, // as Linux has them
		HostQueueBytes: simQueueBytes,
	}
	if m.restores {
		r := s.Resequencer
		c.Resequencer = &r
	}
	rates := make(map[float64]bool)
	for l := range s.real.Links() {
		rate := s.real.Rate(l.ID)
		if rates[rate] {
			continue
		}
		rates[rate] = true
		part := rate / s.RateMbit // queues are in proportion, as in a lab
		c.Queues = append(c.Queues, sim.Queue{RateMbit: rate, Bytes: max(m.mss+m.header, int(simQueueBytes*part)), ECNBytes: int(float64(row.MarkBytes) * part)})
	}
	return c
}

// crossing is how long a packet takes that is alone in a fabric, by store and forward, at the rate
// of the slower host's link.
func (s *simulator) crossing(t *topology.Topology, src, dst topology.NodeID, bytes int) time.Duration {
	one := time.Duration(float64(bytes) * 8e3 / hostsMbit(t, src, dst, s.RateMbit))
	return time.Duration(linksBetween(t, src, dst)) * (s.idle.Delay + one)
}

// answer is how long the receiver's confirmation takes, which the simulator does not send. It
// crosses a fabric that is idle.
func (s *simulator) answer(m model, src, dst topology.NodeID) time.Duration {
	return s.crossing(s.real, src, dst, m.header)
}

// alone is what slowdowns divide by: without the failure.
func (s *simulator) alone(src, dst topology.NodeID, bytes int64) time.Duration {
	if s.idle.lab != nil {
		return s.idle.lab.took(bytes, linksBetween(s.whole, src, dst), hostsMbit(s.whole, src, dst, s.RateMbit))
	}
	return s.ideal(kernelModel, src, dst, bytes)
}

// ideal is how long a flow takes that is alone: a round trip, the packets at the rate of the
// hosts' links, the last full one stored and forwarded, the rest behind it, and the answer.
func (s *simulator) ideal(m model, src, dst topology.NodeID, bytes int64) time.Duration {
	packets := (bytes + int64(m.mss) - 1) / int64(m.mss)
	last := int(bytes-(packets-1)*int64(m.mss)) + m.header
	if packets == 1 {
		return 3*s.crossing(s.whole, src, dst, m.header) + s.crossing(s.whole, src, dst, last)
	}
	beside := (packets-2)*int64(m.mss+m.header) + int64(last)
	return 3*s.crossing(s.whole, src, dst, m.header) + s.crossing(s.whole, src, dst, m.mss+m.header) + time.Duration(float64(beside)*8e3/hostsMbit(s.whole, src, dst, s.RateMbit))
}

// scheduled is a plan as a Source. Flows bear their number as Job.
type scheduled struct {
	plan      *plan
	next      int
	followers [][]int32
	began     []time.Duration
	begun     []bool
}

func newScheduled(p *plan) *scheduled {
	s := &scheduled{plan: p, began: make([]time.Duration, len(p.flows)), begun: make([]bool, len(p.flows)), followers: make([][]int32, len(p.flows))}
	for i := range p.flows {
		if after := p.follows(i); after >= 0 {
			s.followers[after] = append(s.followers[after], int32(i))
		}
	}
	return s
}

func (s *scheduled) flow(i int, at time.Duration) workload.Flow {
	f := s.plan.flows[i]
	f.Job, f.Start = uint32(i), max(f.Start, at)
	s.began[i], s.begun[i] = f.Start, true
	return f
}

// Next is Source's.
func (s *scheduled) Next() (workload.Flow, bool) {
	for ; s.next < len(s.plan.flows); s.next++ {
		if s.plan.follows(s.next) < 0 {
			s.next++
			return s.flow(s.next-1, 0), true
		}
	}
	return workload.Flow{}, false
}

// Done is Source's: flows that follow begin.
func (s *scheduled) Done(f workload.Flow, at time.Duration, begin func(workload.Flow)) {
	for _, i := range s.followers[f.Job] {
		begin(s.flow(int(i), at+s.plan.apart))
	}
}

// model is what the simulator runs of a row.
type model struct {
	policy      string
	restores    bool // the receiver puts packets in order
	mss, header int  // payload of a full packet; Ethernet's, IP's and TCP's headers, as the lab's links count
}

// Timestamps are 12 bytes of a kernel's header. Weft's hosts wrap packets, and have none.
const (
	timestamps = 12
	outer      = 20
)

// kernelModel is the kernel's TCP without a policy.
var kernelModel = model{mss: mss - timestamps, header: headers + timestamps}

// switchModels are the models of switches by the rule that a lab's switches follow.
var switchModels = map[string]string{"rb": "switch-rb", "rrb": "switch-rr", "drill": "switch-drill", "conga": "switch-conga", "luopan": "switch-luopan"}

// modelOf returns the model of a row, or says that there is none. Where packets of a flow take
// several paths the receiver puts them in order: weft's hosts do, and the kernel's TCP finds out
// that its reductions were needless (DSACK, timestamps) and undoes them.
func modelOf(r Row) (model, error) {
	kernel := kernelModel
	switch {
	case r.Hosts.MPTCP:
		return model{}, errors.New("the simulator has no MPTCP")
	case r.Hosts.Congestion == "bbr":
		return model{}, errors.New("the simulator has no BBR")
	case r.Balance != "":
		kernel.restores = true
		if kernel.policy = switchModels[r.Balance]; kernel.policy == "" {
			return model{}, fmt.Errorf("the simulator has no switches of rule %s", r.Balance)
		}
		return kernel, nil
	case r.Hosts.Policy == "":
		kernel.policy = "switch-ecmp"
		return kernel, nil
	}
	return model{policy: r.Hosts.Policy, restores: spray.Reorders(r.Hosts.Policy), mss: mss - outer, header: headers + outer}, nil
}
