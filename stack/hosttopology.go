package stack

import (
	"errors"
	"fmt"

	"weft/topology"
)

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
	if err := h.egress.Carries(t); err != nil {
		return fmt.Errorf("stack: SetTopology: %w", err)
	}
	h.journal.Told(t)
	if h.lookout != nil {
		return h.lookout.SetTopology(t)
	}
	h.setting.Lock()
	defer h.setting.Unlock()
	h.egress.SetTopology(t)
	if h.chooser == nil {
		return nil
	}
	err := h.chooser.SetTopology(t)
	h.journal.Device(err)
	return err
}

// Topology returns the topology in use: what SetTopology was given, less what
// the Host does not trust on its own evidence.
func (h *Host) Topology() *topology.Topology { return h.egress.Topology() }

// Congestion returns what the Host's policy knows of the paths to each rack that
// it sends to; nil where the policy does not look at congestion.
func (h *Host) Congestion() []Congestion { return h.egress.Congestion() }
