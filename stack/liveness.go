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
	"weft/topology"
)

// Liveness has a Host find out alone which paths are dead or lossy,
// with no help from switches, and keep off these. Package liveness says how.
// Its zero value means that package's defaults.
//
// With Config.Topology6 the paths of IPv6 packets are probed over IPv6, and the verdicts on one
// family change nothing for the other.
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

// watch is how a Host finds out how the paths of one family's packets are.
type watch struct {
	lookout *lookout.Lookout  // nil without Config.Liveness
	probes  *dataplane.Outbox // the same
	journal *lookout.Journal  // nil without Config.Log
}

func (w *watch) start() {
	if w.lookout != nil {
		w.lookout.Start()
	}
}

func (w *watch) close() {
	if w.lookout != nil {
		w.lookout.Close()
	}
}

// watches are those of all families.
func (h *Host) watches() []*watch {
	if h.six == nil {
		return []*watch{&h.four}
	}
	return []*watch{&h.four, h.six}
}

// sixCarrier is what the log calls a carrier of IPv6 packets. No two carriers of a Host have one
// name: in the log, each takes back only what it has said itself.
func sixCarrier(c encap.Carrier) string {
	if c == encap.CarrierIPIP {
		return "IPv6 in IPv6"
	}
	return "IPv6 in " + c.String()
}

// watchPaths makes a Host find out how its paths are, if Config.Liveness is set: from start on.
func (h *Host) watchPaths(c *Config) error {
	h.four.journal = h.journal
	o := h.lookoutConfig(c, c.Topology, c.Address)
	o.Plane, o.Journal = h.egress, h.journal
	o.Probe.Observe = func(w *liveness.Watcher, now time.Duration) { h.egress.Report(w, now) }
	if h.chooser != nil {
		o.Tell = h.chooser.tell
	}
	if err := h.four.watch(h, c, o); err != nil {
		return fmt.Errorf("stack: Config.Liveness: %w", err)
	}
	if c.Topology6 != nil {
		h.six = &watch{journal: h.journal.Beside(c.Topology6, sixCarrier(c.Carrier), h.egress.MTU6())}
		o := h.lookoutConfig(c, c.Topology6, c.Address6)
		o.Plane, o.Journal = h.egress.Six(), h.six.journal
		o.Probe.Seed ^= 1 << 63
		o.Probe.Observe = func(w *liveness.Watcher, now time.Duration) { h.egress.Six().Report(w, now) }
		if err := h.six.watch(h, c, o); err != nil {
			return fmt.Errorf("stack: Config.Liveness, IPv6: %w", err)
		}
	}
	if c.Liveness == nil {
		return nil
	}
	all := h.watches()
	h.egress.Remember(c.TCP.RACK)
	h.egress.OnLoss(func() {
		for _, w := range all {
			w.lookout.Kick()
		}
	})
	h.ingress.TakeProbes(func(bufs ...[]byte) {
		for _, w := range all { // each leaves to the other what is of its family
			w.lookout.Take(bufs...)
		}
	})
	return nil
}

// watch makes what watches, as o says.
func (w *watch) watch(h *Host, c *Config, o lookout.Config) (err error) {
	if c.Liveness == nil {
		return nil
	}
	w.probes = h.egress.NewOutbox(probeBatch, max(c.Device.MTU(), encap.MaxOverhead+encap.ProbeLen6))
	o.Probe.Write = func(packet []byte, _ netip.Addr) error { w.probes.Add(packet); return nil }
	o.Flush = w.probes.Flush
	w.lookout, err = lookout.New(o)
	return err
}

// lookoutConfig is what both families have in common.
func (h *Host) lookoutConfig(c *Config, t *topology.Topology, address netip.Addr) (o lookout.Config) {
	l := c.Liveness
	if l == nil {
		return o
	}
	return lookout.Config{
		Probe: probe.Config{
			Topology: t, Address: address, Seed: h.egress.Seed(), MaxDestinations: dataplane.MaxTallied,
			Interval: l.Interval, Multiplier: l.Multiplier, Budget: l.Budget, Floor: l.Floor, MinHold: l.MinHold, MaxHold: l.MaxHold,
			Carrier: c.Carrier, MTU: min(c.Device.MTU(), encap.MaxProbeLen), Require: l.Require, Echoes: bucket.New(maxEchoes, time.Second),
		},
		Clock: h.egress.Clock(),
	}
}

// setTopology has the packets of a family take the live paths of t. It is false if there is
// nobody who watches.
func (w *watch) setTopology(t *topology.Topology) (done bool, err error) {
	w.journal.Told(t)
	if w.lookout == nil {
		return false, nil
	}
	return true, w.lookout.SetTopology(t)
}

// Paths returns what the Host knows of each path that it watches, and the time now on
// the clock that those times are of. Paths of IPv6 packets come after those of IPv4. Without
// Config.Liveness it returns nil.
func (h *Host) Paths() (paths []liveness.PathHealth, now time.Duration) {
	for _, w := range h.watches() {
		if w.lookout != nil {
			list, at := w.lookout.Paths()
			paths, now = append(paths, list...), at
		}
	}
	return paths, now
}

// Carriage says to which racks the Host uses the carrier, and why not to others.
// Without Config.Liveness it is nil: the carrier is used everywhere.
func (h *Host) Carriage() *liveness.Carriage { return h.four.carriage() }

// Carriage6 is Carriage of IPv6 packets. Without Config.Topology6 it is nil.
func (h *Host) Carriage6() *liveness.Carriage {
	if h.six == nil {
		return nil
	}
	return h.six.carriage()
}

func (w *watch) carriage() *liveness.Carriage {
	if w.lookout == nil {
		return nil
	}
	return w.lookout.Carriage()
}

// LivenessStats counts what a Host does to find out about paths. All are zero
// without Config.Liveness.
type LivenessStats struct {
	// ProbeStats counts the Host's probes over IPv4 and what comes in.
	ProbeStats
	Evidence EvidenceStats `json:"evidence"`
	Untold   uint64        `json:"untold"` // times that a PathDevice did not take a topology; it is told again
	// IPv6 is ProbeStats over IPv6; zero without Config.Topology6.
	IPv6 ProbeStats `json:"ipv6"`
}

func (h *Host) livenessStats() (s LivenessStats) {
	if h.four.lookout == nil {
		return s
	}
	s.ProbeStats, s.Evidence = h.four.stats(), h.egress.EvidenceStats()
	if h.six != nil {
		s.IPv6 = h.six.stats()
	}
	if h.chooser != nil {
		s.Untold = h.chooser.untold.Load()
	}
	return s
}

func (w *watch) stats() ProbeStats {
	s := w.lookout.Stats()
	s.Drops = w.probes.Drops()
	return s
}
