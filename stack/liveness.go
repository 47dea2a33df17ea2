package stack

import (
	"fmt"
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/bucket"
	"weft/internal/dataplane"
	"weft/internal/lookout"
	"weft/internal/probe"
	"weft/liveness"
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

const (
	// maxEchoes is how many probes are echoed per second, and at once: those of
	// 500 hosts that probe 16 paths each every second.
	maxEchoes = 8000
	// probeBatch is the most probes that are written at once.
	probeBatch = 64
)

// watch makes a Host find out how its paths are, if Config.Liveness is set: from Start on.
func (h *Host) watch(c *Config) error {
	l := c.Liveness
	if l == nil {
		return nil
	}
	mtu := c.Device.MTU()
	h.probes = h.egress.NewOutbox(probeBatch, max(mtu, encap.MaxOverhead+encap.ProbeLen))
	o := lookout.Config{
		Probe: probe.Config{
			Topology: c.Topology, Address: c.Address, Seed: h.egress.Seed(), MaxDestinations: dataplane.MaxTallied,
			Interval: l.Interval, Multiplier: l.Multiplier, Budget: l.Budget, Floor: l.Floor, MinHold: l.MinHold, MaxHold: l.MaxHold,
			Carrier: c.Carrier, MTU: min(mtu, encap.MaxProbeLen), Require: l.Require, Echoes: bucket.New(maxEchoes, time.Second),
			Write:   func(packet []byte, _ netip.Addr) error { h.probes.Add(packet); return nil },
			Observe: func(w *liveness.Watcher, now time.Duration) { h.egress.Report(w, now) },
		},
		Clock: h.egress.Clock(), Flush: h.probes.Flush, Plane: h.egress, Journal: h.journal,
	}
	if h.chooser != nil {
		o.Tell = h.chooser.tell
	}
	var err error
	if h.lookout, err = lookout.New(o); err != nil {
		return fmt.Errorf("stack: Config.Liveness: %w", err)
	}
	h.egress.Remember(c.TCP.RACK)
	h.egress.OnLoss(h.lookout.Kick)
	h.ingress.TakeProbes(h.lookout.Take)
	return nil
}

// Paths returns what the Host knows of each path that it watches, and the time now on
// the clock that those times are of. Without Config.Liveness it returns nil.
func (h *Host) Paths() (paths []liveness.PathHealth, now time.Duration) {
	if h.lookout == nil {
		return nil, 0
	}
	return h.lookout.Paths()
}

// Carriage says to which racks the Host uses the carrier, and why not to others.
// Without Config.Liveness it is nil: the carrier is used everywhere.
func (h *Host) Carriage() *liveness.Carriage {
	if h.lookout == nil {
		return nil
	}
	return h.lookout.Carriage()
}

// LivenessStats counts what a Host does to find out about paths. All are zero
// without Config.Liveness.
type LivenessStats struct {
	// ProbeStats counts the Host's probes and what comes in.
	ProbeStats
	Evidence EvidenceStats `json:"evidence"`
	Untold   uint64        `json:"untold"` // times that a PathDevice did not take a topology; it is told again
}

func (h *Host) livenessStats() (s LivenessStats) {
	if h.lookout == nil {
		return s
	}
	s.ProbeStats, s.Evidence = h.lookout.Stats(), h.egress.EvidenceStats()
	s.Drops = h.probes.Drops()
	if h.chooser != nil {
		s.Untold = h.chooser.untold.Load()
	}
	return s
}
