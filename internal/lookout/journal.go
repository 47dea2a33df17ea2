package lookout

import (
	"log/slog"
	"sync"

	"weft/internal/event"
	"weft/internal/eventlog"
	"weft/liveness"
	"weft/topology"
)

// Journal says to a log what changes, each change once. A nil *Journal says nothing. It is
// safe for concurrent use. It is to be called without locks that packets need.
type Journal struct {
	log     *eventlog.Log
	carrier string
	longest int      // inner packet, in bytes
	shared  *PathLog // with the Journals of other carriers
	paths   bool     // it tells of paths alone

	mu       sync.Mutex
	topology *topology.Topology // that switches, or whoever else calls SetTopology, told of
	carriage *liveness.Carriage
	untold   string // why the device does not know the paths in use
}

// maxLogged is the most links that are named for one change.
const maxLogged = 16

// NewJournal returns one for a log; nil if that is nil. t is the fabric at the beginning,
// nil if there is none. carrier names what packets are carried by. longest is what an inner packet may have by the carrier, in bytes.
func NewJournal(log *slog.Logger, t *topology.Topology, carrier string, longest int) *Journal {
	if log == nil {
		return nil
	}
	to := eventlog.New(log, nil)
	return &Journal{log: to, carrier: carrier, longest: longest, topology: t, shared: NewPathLog(to)}
}

// Beside returns one for another carrier of the same host, which sees the fabric as t; nil if j is.
func (j *Journal) Beside(t *topology.Topology, carrier string, longest int) *Journal {
	if j == nil {
		return nil
	}
	return &Journal{log: j.log, carrier: carrier, longest: longest, topology: t, shared: j.shared}
}

// Told takes the topology that the host was given.
func (j *Journal) Told(t *topology.Topology) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	was := j.topology
	j.topology = t
	if !SayLinks(j.log, was, t) {
		j.log.Info(event.Topology, "another fabric", "topology", t.String())
		j.shared.forget(j.carrier)
		j.carriage = nil
	}
}

// Found takes what the host has found out alone.
func (j *Journal) Found(t *topology.Topology, suspects []liveness.Suspect, c *liveness.Carriage) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.shared.found(j.carrier, t, suspects)
	if c != j.carriage && c != nil && !j.paths {
		for _, change := range c.Changes(j.carriage) {
			SayRacks(j.log, &change, t, j.carrier, j.longest)
		}
		j.carriage = c
	}
}

// Device takes what a device that chooses paths has said to the paths in use.
func (j *Journal) Device(err error) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	why := ""
	if err != nil {
		why = err.Error()
	}
	switch {
	case why == j.untold:
	case why != "":
		j.log.Warn(event.Device, "the device does not take the paths in use, and is told again", "why", why)
	default:
		j.log.Info(event.Device, "the device has taken the paths in use")
	}
	j.untold = why
}

// Flush tells what was suppressed, if it is some time ago. A Lookout calls it now and then.
func (j *Journal) Flush() {
	if j != nil {
		j.log.Flush()
	}
}

// Failed takes why the host reads no more.
func (j *Journal) Failed(err error) {
	if j != nil {
		j.log.Say(slog.LevelError, event.Device, "device failed, all connections end", "why", err)
	}
}

// ended takes that nobody finds out anything by the carrier any more.
func (j *Journal) ended() {
	if j != nil {
		j.shared.forget(j.carrier)
	}
}

// Close tells what was suppressed. It ends the log of all who have it from Beside, too.
func (j *Journal) Close() {
	if j != nil {
		j.log.Close()
	}
}
