package liveness

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weft/encap"
	"weft/topology"
)

// Config says which host a Watcher serves and how often it probes. Zero values mean the
// documented defaults.
type Config struct {
	// Topology is the baseline; SetTopology replaces it.
	Topology *topology.Topology
	// Self is the host.
	Self topology.NodeID
	// Address is the source address of the probes, one of Self's. Its family is that of all
	// probes, and of the destinations that are watched. Default: the address of Self's
	// kernel, Topology.Node(Self).Addr.
	Address netip.Addr
	// Interval is the time between two probes of one path. If Budget does not suffice,
	// the time is longer. Other times derive from it: a suspicious path is probed every
	// sixth of it, and is dead after at least two Intervals of silence. Default: 20 ms.
	// From 1 ms to 10 s.
	Interval time.Duration
	// Multiplier is the least number of probes missed in a row that convict a path. Where
	// other paths lose probes, too, more are needed. Default: 3, at most 16.
	Multiplier int
	// Budget is the most probes per second, over all paths. Default: 2,000, at most
	// 100,000. Negative: no probes, so that losses are the only evidence. Up to half as
	// many again may be sent in data's class, to find slow paths.
	Budget float64
	// MaxDestinations bounds the destinations watched at a time. Default: 256, at
	// most 65,536.
	MaxDestinations int
	// Floor is the share of a destination's live paths that stays in use whatever the
	// host's own evidence says, rounded up to whole paths. Unproved paths do not count
	// among the live paths and carry nothing: those by switches from which no boomerang
	// comes home, though boomerangs come home from others. Default: 0.5; in (0, 1].
	Floor float64
	// MinHold is the least time that a path is out of use after its first offence. Each
	// offence doubles it, up to MaxHold. Both are jittered by a quarter. Defaults: 5
	// Intervals, 10 s.
	MinHold, MaxHold time.Duration
	// Carrier takes packets by their paths. Carriage says where it is proved.
	Carrier encap.Carrier
	// MTU is the longest data packet, outer header included, in bytes: the uplink's MTU.
	// Full-size probes find out whether packets of this length arrive and, if not, how
	// long packets may be. They cost at most 300 bytes for each probe of Budget. 0: no
	// full-size probes. At least 576 bytes over IPv4 and 1280 over IPv6, plus the outer
	// header.
	MTU int
	// Require makes Carriage never say Plain, even if packets are lost.
	Require bool
	// Rests has boomerangs be as rare as a tenth, and go out together, while there has been
	// no traffic for 5 s and nothing speaks against a path. A switch that dies then is found
	// dead ten to twenty Intervals later. Traffic, or a missed boomerang, ends the rest at once.
	Rests bool
	// Seed of tokens and jitter. It must be secret and random, or answers can be forged.
	// The same seed and calls give the same probes.
	Seed uint64
}

// limits of what probes that nobody answers may cost.
const (
	maxTimeout = 500 * time.Millisecond // for an answer
	retryMute  = time.Second            // between tries to reach a mute destination, at first
	maxMute    = 16 * time.Second       // at last; both differ by up to a quarter
	pathsMute  = 4                      // paths tried at a time while the paths may be at fault
	triesMute  = 60                     // failed tries until a destination that once answered counts as plain
	activeFor  = time.Second            // how long a destination counts as active
	forgetIdle = time.Minute            // when an idle destination is forgotten
)

func (c Config) withDefaults() (Config, error) {
	if c.Topology == nil {
		return c, errors.New("liveness: Topology is missing: give the fabric's baseline")
	}
	if c.Self < 0 || int(c.Self) >= c.Topology.NumHosts() {
		return c, fmt.Errorf("liveness: Self is %d: give a host of %s, 0 to %d", c.Self, c.Topology, c.Topology.NumHosts()-1)
	}
	if !c.Address.IsValid() {
		c.Address = c.Topology.Node(c.Self).Addr
	}
	if id, ok := c.Topology.ByAddr(c.Address); !ok || id != c.Self {
		return c, fmt.Errorf("liveness: Address is %v: give one of %s's", c.Address, c.Topology.Node(c.Self).Name)
	}
	if own := c.Topology.Node(c.Self).Addr; own.Is6() != c.six() {
		return c, fmt.Errorf("liveness: Address is %v, but Topology has the fabric as %v sees it: give an address of that family, or a Topology of the other", c.Address, own)
	}
	def(&c.Interval, 20*time.Millisecond)
	def(&c.Multiplier, 3)
	def(&c.Budget, 2000)
	def(&c.MaxDestinations, 256)
	def(&c.Floor, 0.5)
	def(&c.MinHold, 5*c.Interval)
	def(&c.MaxHold, max(10*time.Second, c.MinHold))
	switch {
	case c.Interval < time.Millisecond || c.Interval > 10*time.Second:
		return c, fmt.Errorf("liveness: Interval is %v: give 1ms to 10s", c.Interval)
	case c.Multiplier < 1 || c.Multiplier > 16:
		return c, fmt.Errorf("liveness: Multiplier is %d: give 1 to 16", c.Multiplier)
	case !(c.Budget <= 100_000): // NaN, too
		return c, fmt.Errorf("liveness: Budget is %v probes/s: give at most 100000", c.Budget)
	case c.MaxDestinations < 1 || c.MaxDestinations > 1<<16:
		return c, fmt.Errorf("liveness: MaxDestinations is %d: give 1 to 65536", c.MaxDestinations)
	case !(c.Floor > 0 && c.Floor <= 1):
		return c, fmt.Errorf("liveness: Floor is %v: give a part above 0, up to 1", c.Floor)
	case c.Carrier.Overhead() == 0:
		return c, fmt.Errorf("liveness: Carrier is %v: give ipip or srv6", c.Carrier)
	case c.MTU != 0 && (c.MTU < c.leastFull() || c.MTU > encap.MaxProbeLen):
		return c, fmt.Errorf("liveness: MTU is %d bytes: give %d to %d, or 0 for no full-size probes", c.MTU, c.leastFull(), encap.MaxProbeLen)
	case c.MinHold < 0 || c.MaxHold < c.MinHold:
		return c, fmt.Errorf("liveness: MinHold is %v and MaxHold %v: give 0 < MinHold <= MaxHold", c.MinHold, c.MaxHold)
	}
	return c, nil
}

func def[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// six reports whether all is IPv6.
func (c *Config) six() bool { return c.Address.Is6() }

// overhead is the length of the outer header in bytes.
func (c *Config) overhead() int { return c.Carrier.OverheadFrom(c.Address) }

// The times that derive from the interval.
func (c *Config) urgent() time.Duration     { return c.Interval / 6 }                       // between probes of a suspicious path
func (c *Config) minTimeout() time.Duration { return c.Interval / 4 }                       // for an answer
func (c *Config) silence() time.Duration    { return 2 * c.Interval }                       // before a path is dead
func (c *Config) piece() time.Duration      { return max(c.Interval, 20*time.Millisecond) } // of the windows of losses
func (c *Config) longest() time.Duration    { return 10 * c.Interval }                      // between probes of a path long dead
