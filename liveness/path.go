package liveness

import (
	"math/bits"
	"net/netip"
	"time"

	"weft/internal/histogram"
	"weft/topology"
)

// none stands for a link that a path does not have.
const none = topology.LinkID(-1)

// cause is why a path is out of use.
type cause uint8

const (
	fine   cause = iota
	dead         // probes are not answered
	lossy        // too many probes are not answered
	losses       // too many packets were retransmitted
)

// path is one path to a destination, or the way up to a bouncing switch and
// back: what probes and losses have told of it.
type path struct {
	group *group
	place int32 // in Watcher.schedule
	index int32 // its number for the pair; for a boomerang that of any pair which uses the switch
	up    int32 // index of the boomerang of the same bouncing switch; its own for a boomerang
	// The links of the path's far half, or of the way up for a boomerang: high
	// next to the bouncing switch, low below it, none if there is no second.
	high, low topology.LinkID
	via       netip.Addr // only of boomerangs
	from      int16      // the host's uplink; only of boomerangs
	down      bool       // the baseline says so: not probed

	cause  cause
	needed uint8         // good probes in a row before it returns
	since  time.Duration // when cause became what it is
	hold   time.Duration // no return before
	again  int16         // offences, for which holds get longer

	history  uint64 // samples of the latest probes, the last in bit 0: 1 if missed
	recorded int8   // how many bits of it count
	goods    int16  // probes answered in a row
	misses   int16  // probes missed in a row
	convicts int16  // of these, those beside which another path's came home
	// alert ends when the path is no longer under suspicion for its losses.
	alert     time.Duration
	accused   time.Duration // sending time of the first of misses
	convicted time.Duration // sending time of the first of convicts
	silentAt  time.Duration // sending time of the last of misses
	answered  time.Duration // sending time of the latest probe answered; before any: -1
	judged    time.Duration // when its losses were looked at
	sampled   time.Duration // sending time of the latest sample

	srtt, rttvar time.Duration // RFC 6298 §2
	lost         window
	lately       evidence
	size         sizing
	slow         slowness
	tally        *Tally // only of boomerangs
	small        bool   // packets must be shorter than by what other paths have in common with it; see group.small
}

// setHalf sets the links of a path's half, of which the last leads to the bouncing switch.
func (p *path) setHalf(links []topology.LinkID) {
	p.high, p.low = links[len(links)-1], none
	if len(links) > 1 {
		p.low = links[0]
	}
}

// Tally counts what a host has learned of the way up to a bouncing switch, since New or since
// the switch is known. Its memory is bounded by the bouncing switches.
type Tally struct {
	RTT    histogram.Histogram // of probes that came home from there
	Missed uint64              // probes that did not in time
	Lost   uint64              // packets by all paths through it that had to be sent again

	latest trips // of RTT
}

// measured takes note of a round trip.
func (t *Tally) measured(rtt time.Duration) {
	t.RTT.Observe(rtt)
	t.latest.add(rtt)
}

// group is the paths to one destination, or the boomerangs of the host. Their
// probes are compared with each other.
type group struct {
	dst     netip.Addr      // the host, as in topology.HostAt; Self for boomerangs
	rack    topology.NodeID // its edge switch
	address netip.Addr
	paths   []path
	gone    bool
	bad     int // paths that are out of use
	small   int // paths whose packets must be shorter: of a destination, than to the bouncing switch
	farDown int // paths whose far half the baseline has down

	answered time.Duration // sending time of the latest probe answered; before any: -1
	silent   int           // probes missed since
	quiet    time.Duration // sending time of the first of silent
	mute     bool          // nobody answers
	tested   bool          // it has been tried since
	tries    int           // in vain since it is mute
	tried    int           // the path last tried while it is mute
	latest   time.Duration // when that was
	retry    time.Duration // when the next is
	srtt     time.Duration
	peak     time.Duration // of round trips; falls slowly

	active time.Duration // latest traffic
	parked bool          // idle: only what is out of use is probed
	packet window        // of all paths

	control control // the latest one
}

// control is a probe beside which those of suspicious paths were sent.
type control struct {
	path  *path // nil: there is none
	i     int32 // in the ring
	token uint64
	sent  time.Duration
}

// init makes the paths of a new group ready.
func (g *group) init(now time.Duration) {
	g.answered, g.active = -1, now
	for i := range g.paths {
		p := &g.paths[i]
		p.group, p.place, p.answered, p.since = g, nowhere, -1, now
	}
}

// suspicious reports whether the path is to be probed often.
func (p *path) suspicious(now time.Duration) bool {
	return p.cause == fine && (p.misses > 0 || p.recorded > 0 && p.history&7 != 0 || now < p.alert)
}

// sample reports whether a probe that is being sent goes into the history. While a path
// is probed often, not all do, or the history would hold only one burst of losses.
func (p *path) sample(now, interval time.Duration) bool {
	if p.recorded > 0 && now-p.sampled < interval/2 {
		return false
	}
	p.sampled = now
	return true
}

func (p *path) record(missed uint64) {
	p.history = p.history<<1 | missed
	p.recorded = min(p.recorded+1, 64)
}

// missed returns how many of the recorded probes were missed.
func (p *path) missed() int { return bits.OnesCount64(p.history) }

// timeout returns how long an answer is waited for.
func (p *path) timeout(c *Config) time.Duration {
	t := 5 * c.Interval
	switch {
	case p.srtt > 0:
		t = p.srtt + 4*p.rttvar
	case p.group.srtt > 0:
		t = 3 * p.group.srtt
	}
	return min(max(t, p.group.peak*3/2, c.minTimeout()), maxTimeout)
}

// measured takes note of a round trip (RFC 6298 §2).
func (p *path) measured(rtt time.Duration) {
	g := p.group
	if p.tally != nil {
		p.tally.measured(rtt)
	}
	if p.srtt == 0 {
		p.srtt, p.rttvar = rtt, rtt/2
	} else {
		p.rttvar += (max(p.srtt-rtt, rtt-p.srtt) - p.rttvar) / 4
		p.srtt += (rtt - p.srtt) / 8
	}
	if g.srtt == 0 {
		g.srtt = rtt
	}
	g.srtt += (rtt - g.srtt) / 16
	if rtt > g.peak {
		g.peak = rtt
	} else {
		g.peak -= (g.peak - rtt) / 64
	}
}

// clean forgets what was held against a path.
func (p *path) clean() {
	p.misses, p.convicts, p.goods = 0, 0, 0
	p.history, p.recorded = 0, 0
	p.alert = 0
	p.lost = window{piece: p.lost.piece}
	p.slow.homes, p.slow.bad = 0, 0
}
