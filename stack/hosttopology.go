package stack

import (
	"errors"
	"fmt"
	"time"

	"weft/liveness"
	"weft/topology"
)

// watch begins to probe paths, if the Host is to.
func (h *Host) watch(c *Config, seed uint64) {
	if c.Liveness == nil {
		return
	}
	e := h.egress
	e.mu.Lock() // the sampler's timer runs already
	e.evidence = newEvidence(seed, c.RACK)
	e.mu.Unlock()
	h.monitor = newMonitor(c.Liveness, e, h.address, h.ingress.clock, seed, e.writeProbes, h.chooser)
	h.ingress.probe, h.ingress.tooLong = h.monitor.receive, h.monitor.tooLong
}

// sample begins to answer samples, to send them if the policy does, and to listen
// to marks if the policy goes by them.
func (h *Host) sample(c *Config) {
	e := h.egress
	if e.tunnel != nil {
		return
	}
	s := newSampler(e, h.address, c.Clock == nil)
	e.mu.Lock()
	e.sampler = s
	e.adopt(e.aware)
	e.mu.Unlock()
	h.ingress.sample = s.receive
	if e.informed != nil {
		h.ingress.marks = e.receiveMarks
	}
}

// SetTopology makes the Host spread later packets over the live paths of t:
// once it has returned, nothing is sent by a path that is dead in t, unless all paths
// to a destination are: then all are tried (topology.PathsOrAll). Connections
// stay. t must contain the Host's address. With Config.Liveness the Host leaves
// out besides what it knows by itself to be dead. A Device that chooses paths is
// told as well (TopologyDevice); its error is returned, and then it may still use
// the paths of before.
func (h *Host) SetTopology(t *topology.Topology) error {
	if t == nil {
		return errors.New("stack: SetTopology: no topology")
	}
	if h.egress.tunnel != nil {
		return errors.New("stack: SetTopology: a Tunnel has none")
	}
	if id, ok := t.ByAddr(h.address); !ok || int(id) >= t.NumHosts() {
		return fmt.Errorf("stack: SetTopology: %v is no host of %v", h.address, t)
	}
	if h.monitor != nil {
		return h.monitor.setTopology(t)
	}
	h.setting.Lock()
	defer h.setting.Unlock()
	h.egress.setTopology(t)
	if h.chooser != nil {
		return h.chooser.SetTopology(t)
	}
	return nil
}

// Topology returns the topology in use: what SetTopology was given, less what
// the Host does not trust on its own evidence.
func (h *Host) Topology() *topology.Topology { return h.egress.topology() }

// Paths returns what the Host knows of each path that it watches, and the time
// now on the clock that it tells the times of; nil without Config.Liveness.
func (h *Host) Paths() (paths []liveness.PathHealth, now time.Duration) {
	if h.monitor == nil {
		return nil, 0
	}
	return h.monitor.health()
}
