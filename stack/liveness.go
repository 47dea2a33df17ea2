package stack

import (
	"fmt"
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/bucket"
	"weft/internal/dataplane"
	"weft/internal/probe"
	"weft/liveness"
	"weft/topology"
)

// Liveness has a Host find out alone which paths are dead or lossy,
// with no help from switches, and keep off these. Package liveness says how.
// Its zero value means that package's defaults.
//
// Probes of peers that have it, too, are echoed. Incoming probes must reach the
// Host: those that come back from a bouncing switch have the Host's own address
// as their source, which a kernel on the way drops if it checks sources
// (net.ipv4.conf.*.rp_filter must not be 1 on the uplink).
type Liveness struct {
	// Interval, Multiplier, Budget, Floor, MinHold and MaxHold are those of
	// liveness.Config.
	Interval         time.Duration
	Multiplier       int
	Budget           float64
	Floor            float64
	MinHold, MaxHold time.Duration
	// Require has packets encapsulated though it is not proved that the carrier works.
	// Without it they leave plain to racks for which it is not: right after New, and
	// when no boomerang comes home any more.
	Require bool
}

// Bounds of what others may have a Host do.
const (
	// maxEchoes is how many probes are echoed per second, and at once: those of
	// 500 hosts that probe 16 paths each every second.
	maxEchoes = 8000
	// minPause is the shortest time between two looks at what is due.
	minPause = 100 * time.Microsecond
)

// probing is how the paths of a host are probed, but for its clock and device.
func (l *Liveness) probing(t *topology.Topology, address netip.Addr, carrier encap.Carrier, mtu int, seed uint64) probe.Config {
	return probe.Config{
		Topology: t, Address: address, Seed: seed, MaxDestinations: dataplane.MaxTallied,
		Interval: l.Interval, Multiplier: l.Multiplier, Budget: l.Budget, Floor: l.Floor, MinHold: l.MinHold, MaxHold: l.MaxHold,
		Carrier: carrier, MTU: min(mtu, encap.MaxProbeLen), Require: l.Require, Echoes: bucket.New(maxEchoes, time.Second),
	}
}

func (c *Config) validateLiveness() error {
	if c.Liveness == nil {
		return nil
	}
	if _, err := probe.New(c.Liveness.probing(c.Topology, c.Address, c.Carrier, c.Device.MTU(), 1)); err != nil {
		return fmt.Errorf("stack: Config.Liveness: %w", err)
	}
	return nil
}

// LivenessStats counts what a Host does to find out about paths. All are zero
// without Config.Liveness.
type LivenessStats struct {
	Watcher  liveness.Stats `json:"watcher"`
	Evidence EvidenceStats  `json:"evidence"`
	Echoed   uint64         `json:"echoed"`  // probes of others, answered
	Refused  uint64         `json:"refused"` // probes of others, not answered: too many, or by no path between the two
	Forged   uint64         `json:"forged"`  // probes that are none, by their checksum or what they say
	Drops    uint64         `json:"drops"`   // probes that the device did not take
	Untold   uint64         `json:"untold"`  // times that a PathDevice did not take a topology; it is told again
}
