package stack

import (
	"errors"
	"fmt"
	"time"

	"weft/liveness"
	"weft/topology"
)

// watch begins to probe paths, if Config.Liveness is set.
func (h *Host) watch(c *Config, seed uint64) {
	if c.Liveness == nil {
		return
	}
	h.egress.Remember(c.TCP.RACK)
	h.monitor = newMonitor(c, h.egress, h.ingress.Clock(), seed, h.egress.WriteProbes, h.chooser, h.journal)
	h.ingress.TakeProbes(h.monitor.receive, h.monitor.tooLong)
}

// sample begins to answer samples, and to send them if the policy does.
func (h *Host) sample(c *Config) {
	if h.tunnel {
		return
	}
	h.sampler = newSampler(h.egress, h.address, c.Simulation.Clock == nil)
	h.egress.SetSampler(h.sampler)
	h.ingress.TakeSamples(h.sampler.receive)
}

// SetTopology makes the Host spread later packets over the live paths of t. Once it
// has returned, nothing is sent by a path that is dead in t, unless all paths to a
// destination are dead: then all are tried (topology.PathsOrAll). Connections stay. t
// must contain the Host's address. With Config.Liveness the Host also leaves out what
// it knows by itself to be dead. A Device that chooses paths is told as well
// (PathDevice). If the device fails, SetTopology returns its error, and the
// device may still use the paths of before.
func (h *Host) SetTopology(t *topology.Topology) error {
	if t == nil {
		return errors.New("stack: SetTopology: no topology")
	}
	if h.tunnel {
		return errors.New("stack: SetTopology: a Tunnel has none")
	}
	if id, ok := t.ByAddr(h.address); !ok || int(id) >= t.NumHosts() {
		return fmt.Errorf("stack: SetTopology: %v is no host of %v", h.address, t)
	}
	h.journal.told(t)
	if h.monitor != nil {
		return h.monitor.setTopology(t)
	}
	h.setting.Lock()
	defer h.setting.Unlock()
	h.egress.SetTopology(t)
	if h.chooser == nil {
		return nil
	}
	err := h.chooser.SetTopology(t)
	h.journal.device(err)
	return err
}

// Topology returns the topology in use: what SetTopology was given, less what
// the Host does not trust on its own evidence.
func (h *Host) Topology() *topology.Topology { return h.egress.Topology() }

// Paths returns what the Host knows of each path that it watches, and the time now on
// the clock that those times are of. Without Config.Liveness it returns nil.
func (h *Host) Paths() (paths []liveness.PathHealth, now time.Duration) {
	if h.monitor == nil {
		return nil, 0
	}
	return h.monitor.health()
}

// Carriage says to which racks the Host uses the carrier, and why not to others.
// Without Config.Liveness it is nil: the carrier is used everywhere.
func (h *Host) Carriage() *liveness.Carriage {
	if h.monitor == nil {
		return nil
	}
	h.monitor.mu.Lock()
	defer h.monitor.mu.Unlock()
	return h.monitor.driver.Carriage()
}

// Congestion returns what the Host's policy knows of the paths to each rack that
// it sends to; nil where the policy does not look at congestion.
func (h *Host) Congestion() []Congestion { return h.egress.Congestion() }
