package daemon

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/internal/pacing"
	"weft/internal/probe"
	"weft/internal/prober"
	"weft/liveness"
	"weft/luopan"
	"weft/policy"
	"weft/topology"
)

// fakeKernel keeps what a daemon does to it, forgets what it is told to, and
// refuses what chance has it refuse.
type fakeKernel struct {
	random   *rand.Rand
	refuse   float64 // the part of all calls that fail
	absent   bool    // there is no uplink
	down     bool
	old      bool // it cannot keep what arrives in order
	index    int
	strict   bool // somebody has set a strict reverse path filter
	looks    int
	name     string        // of the uplink; "" for p0
	mtu      int           // of the uplink; 0 for 1500
	moved    bool          // the host has lost its address
	forwards bool          // it forwards packets
	unset    []string      // settings that are not as they should be
	mute     time.Duration // how long the gateway is waited for in vain; 0: it answers

	plan     *hostsetup.Plan // applied; nil: nothing is
	lost     []string        // what of the plan is missing
	diverted bool
	locked   bool // by a set-up

	foreign   []hostprog.ForeignProgram
	program   *fakeProgram // attached
	unleased  int          // calls while the program waits for the daemon
	receivers []*fakeReceiver
	followers []*fakeFollower
	samplers  []*fakeSampler

	uncut   string // why there is no device that cuts late
	unpaced error  // why nothing can pace connections
	pacers  int    // that were opened
}

var errRefused = errors.New("the kernel refuses")

func (k *fakeKernel) fails() error {
	// Any call may wait for others for longer than a program waits for the daemon.
	if k.program != nil && k.program.lives && !k.program.leased {
		k.unleased++
	}
	if k.random.Float64() < k.refuse {
		return errRefused
	}
	return nil
}

func (k *fakeKernel) orders() error {
	if k.old {
		return errRefused
	}
	return nil
}

// fakePacer slows nobody.
type fakePacer struct{}

func (fakePacer) SetSecret(func(uint8) []byte) {}
func (fakePacer) Stats() pacing.Stats          { return pacing.Stats{} }
func (fakePacer) Close() error                 { return nil }

// kernel returns it as a daemon sees it.
func (k *fakeKernel) kernel() kernel {
	return kernel{
		orders: k.orders,
		find: func(_ context.Context, c *Config) (place, error) {
			p := place{address: netip.MustParseAddr("10.0.0.2")}
			if k.absent || k.down {
				return p, errors.New("no route to a core")
			}
			p.uplink = k.uplink()
			if c.tunnels() {
				for _, q := range c.UDP.Peers {
					p.peers = append(p.peers, peer{q, netip.MustParseAddrPort("192.0.2.1:1")})
				}
			}
			p.mtu, p.address6 = 1500, c.receives6()
			if k.strict {
				p.strict = []string{"p0"}
			}
			return p, k.fails()
		},
		control: func(name string) error {
			if name == "nosuch" {
				return errors.New("the kernel does not know it")
			}
			return k.fails()
		},
		reach: func(place) error {
			if k.mute == 0 {
				return nil
			}
			time.Sleep(k.mute)
			return errors.New("the gateway does not answer")
		},
		look: func(p place) (place, error) {
			k.looks++
			if k.absent || p.uplink.Index != 0 && p.uplink.Index != k.index {
				return p, hostprog.ErrUplinkGone
			}
			p.uplink, p.strict = k.uplink(), nil
			if k.strict {
				p.strict = []string{"p0"}
			}
			p.homeless, p.forwards = k.moved, k.forwards
			return p, k.fails()
		},
		setUp: func(p hostsetup.Plan) (hostSetup, error) {
			if err := k.fails(); err != nil {
				return nil, err
			}
			if k.locked {
				panic("a second set-up")
			}
			k.plan, k.locked, k.lost = &p, true, nil
			return fakeSetup{k}, nil
		},
		open: func(c *Config, p place, _ hostsetup.Plan) (receiver, error) {
			if err := k.fails(); err != nil {
				return nil, err
			}
			r := &fakeReceiver{k: k, policy: c.Policy, six: p.address6, payload: c.payloadMax(p), done: make(chan struct{})}
			k.receivers = append(k.receivers, r)
			return r, nil
		},
		spray: func(c hostprog.SprayConfig) (sprayer, error) {
			if err := k.fails(); err != nil {
				return nil, err
			}
			k.program = &fakeProgram{k: k, config: c, topology: c.Topology, six: c.Topology6}
			k.program.started = k.program.carried()
			return k.program, nil
		},
		note: func(int64) (*hostprog.Forwarded, error) { return nil, nil },
		pace: func(c pacing.Config) (pacer, error) {
			if k.unpaced != nil {
				return nil, k.unpaced
			}
			k.pacers++
			return fakePacer{}, nil
		},
		sample: func(c prober.SamplerConfig) (sampler, error) {
			if err := k.fails(); err != nil {
				return nil, err
			}
			s := &fakeSampler{k, c.Topology}
			k.samplers = append(k.samplers, s)
			return s, nil
		},
		follow: func(c *Config, _ place, t *topology.Topology, _ receiver, tell func(news)) (follower, error) {
			if err := k.fails(); err != nil {
				return nil, err
			}
			f := &fakeFollower{k: k, config: c, topology: t, told: t, tell: tell}
			f.none, f.all = carriages(t)
			f.proved = f.none
			if t := c.six(); t != nil {
				f.told6 = t
				f.none6, f.all6 = carriages(t)
				f.proved6 = f.none6
			}
			k.followers = append(k.followers, f)
			f.say()
			return f, nil
		},
	}
}

func (k *fakeKernel) uplink() hostsetup.Uplink {
	u := hostsetup.Uplink{Name: "p0", Index: k.index, Up: !k.down, MTU: 1500, Strict: k.strict}
	if k.name != "" {
		u.Name = k.name
	}
	if k.mtu != 0 {
		u.MTU = k.mtu
	}
	return u
}

type fakeSetup struct{ k *fakeKernel }

func (s fakeSetup) Repair(p hostsetup.Plan) (mended []string, err error) {
	if err := s.k.fails(); err != nil {
		return nil, err
	}
	mended = s.k.lost
	s.k.plan, s.k.lost = &p, nil
	return mended, nil
}

func (s fakeSetup) RepairSettings() (mended []string, err error) {
	if err := s.k.fails(); err != nil {
		return nil, err
	}
	mended, s.k.unset = s.k.unset, nil
	return mended, nil
}

func (s fakeSetup) Divert() error {
	if err := s.k.fails(); err != nil {
		return err
	}
	s.k.diverted = true
	return nil
}

func (s fakeSetup) Undivert() error {
	if err := s.k.fails(); err != nil {
		return err
	}
	s.k.diverted = false
	return nil
}

// Withdraw succeeds always, as removing does in the real kernel.
func (s fakeSetup) Withdraw() error {
	s.k.plan, s.k.diverted, s.k.lost = nil, false, nil
	return nil
}

func (s fakeSetup) Unknown() []string { return nil }

func (s fakeSetup) Restore() error {
	s.k.locked = false
	return s.Withdraw()
}

type fakeProgram struct {
	k        *fakeKernel
	lives    bool // it was told that the daemon does
	leased   bool // and is busy
	config   hostprog.SprayConfig
	topology *topology.Topology
	six      *topology.Topology
	detached bool // by somebody else
	closed   bool
	plain    map[netip.Prefix]bool // nil: as at the beginning
	started  []netip.Prefix        // racks whose packets it carried from the first on
}

// CutsLate is as that of the real one.
func (p *fakeProgram) CutsLate() (late bool, why string) {
	if !p.config.CutLate {
		return false, ""
	}
	return p.k.uncut == "", p.k.uncut
}

// carried are the racks to which packets are encapsulated.
func (p *fakeProgram) carried() (list []netip.Prefix) {
	for six, t := range map[bool]*topology.Topology{false: p.config.Topology, true: p.config.Topology6} {
		if t == nil {
			continue
		}
		for edge := range t.Racks() {
			for _, rack := range t.RackPrefixesOf(edge, six) {
				if edge != t.EdgeOf(0) && p.carries(rack) {
					list = append(list, rack)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return list
}

func (p *fakeProgram) SetTopology(t *topology.Topology) error {
	if err := p.k.fails(); err != nil {
		return err
	}
	switch {
	case sameFabric(p.config.Topology, t):
		p.topology = t
	case sameFabric(p.config.Topology6, t):
		p.six = t
	default:
		panic("a topology of another fabric")
	}
	return nil
}

func (p *fakeProgram) SetPlain(plain func(netip.Prefix) bool) error {
	if err := p.k.fails(); err != nil {
		return err
	}
	p.plain = make(map[netip.Prefix]bool)
	for n := range p.config.Topology.Nodes() {
		if n.Layer == topology.LayerEdge {
			rack := p.config.Topology.RackOf(n.ID)
			p.plain[rack] = plain(rack)
		}
	}
	if t := p.config.Topology6; t != nil {
		for edge := range t.Racks() {
			for _, rack := range t.RackPrefixesOf(edge, true) {
				p.plain[rack] = plain(rack)
			}
		}
	}
	return nil
}

// carries reports whether packets to a rack are encapsulated.
func (p *fakeProgram) carries(rack netip.Prefix) bool {
	if p.plain == nil {
		return !p.config.StartPlain || p.config.StartCarried != nil && p.config.StartCarried(rack)
	}
	return !p.plain[rack]
}

// carriages are what is known of a fabric when nothing is proved, and when nothing
// needs to be.
func carriages(t *topology.Topology) (none, all *liveness.Carriage) {
	self := t.Node(0)
	for budget, c := range map[float64]**liveness.Carriage{0: &none, -1: &all} {
		w, err := liveness.New(liveness.Config{Topology: t, Self: self.ID, Address: self.Addr, Budget: budget, MTU: 1500})
		if err != nil {
			panic(err)
		}
		*c = w.Carriage()
	}
	return none, all
}
func (p *fakeProgram) Beat() error {
	p.lives, p.leased = true, false
	return nil
}

func (p *fakeProgram) Lease() error {
	p.lives, p.leased = true, true
	return nil
}

// Stats has seen one packet, so that the programs of a daemon can be counted.
func (p *fakeProgram) Stats() (hostprog.SprayStats, error) {
	return hostprog.SprayStats{Seen: 1}, nil
}

func (p *fakeProgram) Foreign() ([]hostprog.ForeignProgram, error) { return p.k.foreign, nil }

func (p *fakeProgram) Repair() ([]string, error) {
	if err := p.k.fails(); err != nil || !p.detached {
		return nil, err
	}
	p.detached = false
	return []string{"the program was missing"}, nil
}

func (p *fakeProgram) Close() error {
	p.closed = true
	if p.k.program == p {
		p.k.program = nil
	}
	return nil
}

type fakeReceiver struct {
	k        *fakeKernel
	policy   string
	six      netip.Addr
	topology *topology.Topology
	carriage *liveness.Carriage

	topology6 *topology.Topology
	carriage6 *liveness.Carriage

	payload  int // the bound of super-segments
	done     chan struct{}
	detached bool // one of its programs, by somebody else
	hangs    bool
}

func (r *fakeReceiver) fitTrains(payload int) (changed bool, err error) {
	if err := r.k.fails(); err != nil || payload == r.payload {
		return false, err
	}
	r.payload = payload
	return true, nil
}
func (r *fakeReceiver) start(hostsetup.Plan) error        { return r.k.fails() }
func (r *fakeReceiver) alive(time.Time) bool              { return !r.hangs }
func (r *fakeReceiver) SetCarriage(c *liveness.Carriage)  { r.carriage = c }
func (r *fakeReceiver) SetCarriage6(c *liveness.Carriage) { r.carriage6 = c }
func (r *fakeReceiver) devices() map[string]Device        { return nil }
func (r *fakeReceiver) steering() any                     { return nil }
func (r *fakeReceiver) ordering() any                     { return nil }
func (r *fakeReceiver) Done() <-chan struct{}             { return r.done }
func (r *fakeReceiver) Err() error                        { return errors.New("the TUN is gone") }

func (r *fakeReceiver) Repair() ([]string, error) {
	if err := r.k.fails(); err != nil || !r.detached {
		return nil, err
	}
	r.detached = false
	return []string{"the steering was missing"}, nil
}

func (r *fakeReceiver) SetTopology(t *topology.Topology) error {
	if err := r.k.fails(); err != nil {
		return err
	}
	if t.Node(0).Addr.Is6() {
		r.topology6 = t
	} else {
		r.topology = t
	}
	return nil
}

func (r *fakeReceiver) SetPolicy(name string, _ policy.Options) error {
	if err := r.k.fails(); err != nil {
		return err
	}
	r.policy = name
	return nil
}

func (r *fakeReceiver) Close() error {
	r.k.receivers = slices.DeleteFunc(r.k.receivers, func(x *fakeReceiver) bool { return x == r })
	return nil
}

type fakeSampler struct {
	k        *fakeKernel
	topology *topology.Topology
}

func (s *fakeSampler) SetTopology(t *topology.Topology)   { s.topology = t }
func (s *fakeSampler) Destinations() []luopan.Destination { return nil }
func (s *fakeSampler) Stats() probe.SampleStats           { return probe.SampleStats{} }
func (s *fakeSampler) Close() error {
	s.k.samplers = slices.DeleteFunc(s.k.samplers, func(x *fakeSampler) bool { return x == s })
	return nil
}

type fakeFollower struct {
	k        *fakeKernel
	config   *Config
	topology *topology.Topology
	tell     func(news)
	probes   probing // nothing, unless a test sets it

	none, all *liveness.Carriage
	proved    *liveness.Carriage // as was told last
	told      *topology.Topology

	// The same for IPv6, if that is carried.
	none6, all6, proved6 *liveness.Carriage
	told6                *topology.Topology
}

// say tells what is known.
func (f *fakeFollower) say() {
	f.tell(news{f.config.encapsulation(), f.told, f.proved})
	if f.told6 != nil {
		f.tell(news{byIPv6, f.told6, f.proved6})
	}
}

func (f *fakeFollower) setKeys(c *Config) error {
	if err := f.k.fails(); err != nil {
		return err
	}
	f.config = c
	return nil
}
func (f *fakeFollower) heard(t *topology.Topology) {
	if sameFabric(f.told6, t) {
		f.told6 = t
	} else {
		f.told = t
	}
	f.say()
}

// rebase has what was proved hold.
func (f *fakeFollower) rebase(c *Config, _ place) error {
	if err := f.k.fails(); err != nil {
		return err
	}
	was, was6 := f.proved == f.all, f.told6 != nil && f.proved6 == f.all6
	f.config = c
	if !sameFabric(f.told, c.fabric) {
		f.told, f.topology = c.fabric, c.fabric
		f.none, f.all = carriages(c.fabric)
		if f.proved = f.none; was {
			f.proved = f.all
		}
	}
	switch t := c.six(); {
	case t == nil:
		f.told6 = nil
	case !sameFabric(f.told6, t):
		f.told6 = t
		f.none6, f.all6 = carriages(t)
		if f.proved6 = f.none6; was6 {
			f.proved6 = f.all6
		}
	}
	f.say()
	return nil
}

func (f *fakeFollower) updated() any     { return nil }
func (f *fakeFollower) probing() probing { return f.probes }
func (f *fakeFollower) refused() string  { return "" }
func (f *fakeFollower) Close() error {
	f.k.followers = slices.DeleteFunc(f.k.followers, func(x *fakeFollower) bool { return x == f })
	return nil
}

// miscarries says to which rack the program's packets go otherwise than is known to
// the daemon, "" for none.
func (k *fakeKernel) miscarries(d *daemon) string {
	for n := range d.topology.Nodes() {
		if n.Layer != topology.LayerEdge || !d.config.proves() {
			continue
		}
		rack := d.topology.RackOf(n.ID)
		if k.program.carries(rack) == d.carriage.Plain(n.ID) {
			return fmt.Sprintf("packets to %s: encapsulated %v, plain %v", n.Name, k.program.carries(rack), d.carriage.Plain(n.ID))
		}
	}
	c := d.config
	t := c.six()
	if t == nil || !d.config.proves() {
		return ""
	}
	if k.program.six != d.six.topology {
		return "the program has another topology of IPv6"
	}
	if r := k.receivers[0]; c.diverted6() != nil && (r.topology6 != d.six.topology || r.carriage6 != d.six.carriage) {
		return "the receiver has another topology of IPv6, or another carriage"
	}
	for edge := range t.Racks() {
		for _, rack := range t.RackPrefixesOf(edge, true) {
			if k.program.carries(rack) == d.six.carriage.Plain(edge) {
				return fmt.Sprintf("packets to %v: encapsulated %v, plain %v", rack, k.program.carries(rack), d.six.carriage.Plain(edge))
			}
		}
	}
	return ""
}

// wrong says in what the kernel, the status and the configuration differ, "" if
// in nothing.
func (k *fakeKernel) wrong(d *daemon) string {
	s := d.snapshot()
	if k.unleased > 0 {
		return fmt.Sprintf("%d calls of the kernel that may outlast the program's patience", k.unleased)
	}
	if !d.working {
		if s.State != StateAway || k.plan != nil || k.diverted || k.program != nil || len(k.receivers)+len(k.samplers)+len(k.followers) > 0 {
			return fmt.Sprintf("state %q, but left behind: plan %v, diverted %v, program %v, %d receivers, %d samplers, %d followers",
				s.State, k.plan != nil, k.diverted, k.program != nil, len(k.receivers), len(k.samplers), len(k.followers))
		}
		return ""
	}
	c := d.config
	plan, err := c.plan(d.place)
	if err != nil {
		return err.Error()
	}
	switch {
	case s.State != StateWorking || s.Policy != c.Policy || s.Reloads != d.reloads:
		return fmt.Sprintf("status: state %q, policy %s, %d reloads", s.State, s.Policy, s.Reloads)
	case k.plan == nil || !reflect.DeepEqual(*k.plan, plan):
		return "the plan in force is another one"
	case k.diverted != c.diverts():
		return fmt.Sprintf("diverted %v under policy %s", k.diverted, c.Policy)
	case k.program == nil || k.program.closed || k.program != d.spray:
		return "the attached program is not the daemon's"
	case !reflect.DeepEqual(k.program.config.Policy, c.uplinkPolicy()) || k.program.topology != d.topology:
		return fmt.Sprintf("the program has policy %s over %v, want %s over %v", k.program.config.Policy.Name, k.program.topology, c.Policy, d.topology)
	case k.miscarries(d) != "":
		return k.miscarries(d)
	case len(k.receivers) != 1 || len(k.followers) != 1 || len(k.samplers) > 1:
		return fmt.Sprintf("%d receivers, %d followers, %d samplers", len(k.receivers), len(k.followers), len(k.samplers))
	case c.receives6().IsValid() && k.receivers[0].six != c.receives6():
		return fmt.Sprintf("the receiver has IPv6 address %v, want %v", k.receivers[0].six, c.receives6())
	case k.receivers[0].policy != c.Policy:
		return fmt.Sprintf("the receiver has policy %s, want %s", k.receivers[0].policy, c.Policy)
	case k.receivers[0].topology != nil && k.receivers[0].topology != d.topology:
		return "the receiver has another topology"
	case k.receivers[0].carriage != d.carriage:
		return "the receiver has another carriage"
	case len(k.samplers) == 1 && k.samplers[0].topology != d.topology:
		return "the sampler has another topology"
	case k.followers[0].config.Topology != c.Topology || !reflect.DeepEqual(k.followers[0].config.Failures, c.Failures):
		return "the follower has another configuration"
	}
	var down []string
	for _, l := range d.topology.Down() {
		down = append(down, d.topology.LinkName(l))
	}
	if !slices.Equal(down, s.Failures.Down) {
		return fmt.Sprintf("links down %v, in the status %v", down, s.Failures.Down)
	}
	return ""
}
