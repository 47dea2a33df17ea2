package switchd

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"weft/fabric"
	"weft/internal/scheduling"
	"weft/internal/service"
	"weft/topology"
	"weft/topoupdate"
	"weft/topoupdate/wire"
)

// Status is what an agent says about itself. Counters count from the start.
type Status struct {
	Version  int     `json:"version"` // StatusVersion
	Switch   string  `json:"switch"`  // tells the status of a switch from a host's
	Topology string  `json:"topology"`
	Process  int     `json:"process"`
	Uptime   float64 `json:"uptime_s"` // seconds

	Down       []string    `json:"down"`    // links that are down, with those of the baseline
	Changes    uint64      `json:"changes"` // of that
	Neighbours []Neighbour `json:"neighbours"`
	Database   []Entry     `json:"database"`
	Routes     *RouteStats `json:"routes,omitempty"`
	Repairs    *Repairs    `json:"repairs,omitempty"`

	Signed      bool              `json:"signed"`   // only what is signed with a known key is believed
	Received    uint64            `json:"received"` // messages, rejected ones included
	Rejected    map[string]uint64 `json:"rejected,omitempty"`
	HellosSent  uint64            `json:"hellos_sent"`
	UpdatesSent uint64            `json:"updates_sent"`
	Flooding    Flooding          `json:"flooding"`
	Wire        wire.Stats        `json:"wire"`

	Meters     []fabric.PortMeter       `json:"meters,omitempty"`   // of the ports, where they are metered
	Feedback   *fabric.TellerStats      `json:"feedback,omitempty"` // to senders, with meter.qcn
	Extensions []fabric.ExtensionStatus `json:"extensions,omitempty"`
	MeterError string                   `json:"meter_error,omitempty"` // why they cannot be read

	Balance      *fabric.BalanceStats    `json:"balance,omitempty"`       // where a program balances
	Classifier   *fabric.ClassifierStats `json:"classifier,omitempty"`    // where flows are classified
	Scheduler    *scheduling.Status      `json:"scheduler,omitempty"`     // where elephants are reported
	BalanceError string                  `json:"balance_error,omitempty"` // why neither is so, or its counters cannot be read

	// What became of packets that were encapsulated for the switch or have labels. nil
	// where the agent has not configured that.
	Decap        *fabric.Counters      `json:"decap,omitempty"`
	Edge         *fabric.EdgeCounters  `json:"edge,omitempty"`
	Labels       *fabric.LabelCounters `json:"labels,omitempty"`
	CounterError string                `json:"counter_error,omitempty"` // why they cannot be read

	Error string `json:"error,omitempty"` // why it has ended by itself
}

// StatusVersion rises when a key of Status goes or comes to mean something else. New keys do
// not raise it.
const StatusVersion = 1

// Repairs counts the changes of others that the agent has undone.
type Repairs struct {
	service.Repairs
	Trouble string `json:"trouble,omitempty"` // what it cannot put right, and who can
}

// Neighbour is one port and who is behind it.
type Neighbour struct {
	Port   string  `json:"port"`
	Name   string  `json:"neighbour"`
	State  string  `json:"state"` // up, down, or held: it works, and is reported down until it has for a while
	Why    string  `json:"why"`
	Since  float64 `json:"since_s"`            // seconds ago, that it is so because of Why
	Held   float64 `json:"held_s,omitempty"`   // seconds for which it is still reported down
	Queued int     `json:"queued,omitempty"`   // entries to be sent to it
	Hears  bool    `json:"hears"`              // it has an agent, and both hear each other
	Sent   uint64  `json:"sent"`               // messages
	Lost   uint64  `json:"not_sent,omitempty"` // messages that the device did not take
	Got    uint64  `json:"received"`           // messages
	Drops  uint64  `json:"dropped,omitempty"`  // by the kernel: TTL below 255, or no room
	Late   uint64  `json:"late,omitempty"`     // times that it was taken for dead and was only late: it is given more time
}

// Entry is what a switch says about itself.
type Entry struct {
	Switch      string   `json:"switch"`
	Incarnation uint64   `json:"incarnation"` // when its agent was started, mostly in ns since 1970
	Sequence    uint32   `json:"sequence"`
	Age         float64  `json:"age_s"` // seconds
	From        string   `json:"from"`  // the neighbour that told it
	Down        []string `json:"down,omitempty"`
}

// Flooding counts entries. A message has several.
type Flooding struct {
	Originated uint64 `json:"originated"` // own ones
	Sent       uint64 `json:"sent"`
	Changed    uint64 `json:"changed"`   // received, and they said something new
	Refreshed  uint64 `json:"refreshed"` // received, newer, and they said the same
	Repeated   uint64 `json:"repeated"`  // received, and known
	Older      uint64 `json:"older"`     // received, and older than what is known
}

// Status returns what the agent knows and has done.
func (a *Agent) Status() Status {
	wires := a.ports.Stats()
	a.mu.Lock()
	now := a.now()
	stats, neighbours, database, t := a.machine.Stats(), a.machine.Neighbours(), a.machine.Database(), a.machine.Topology()
	s := Status{Version: StatusVersion, Changes: a.changes, Signed: a.machine.Signed()}
	if a.err != nil {
		s.Error = a.err.Error()
	}
	a.mu.Unlock()
	s.Switch, s.Topology = t.Node(a.config.Self).Name, t.String()
	s.Process, s.Uptime = os.Getpid(), now.Seconds()
	s.Down = linkNames(t, t.Down())
	s.Received, s.Rejected = stats.Received, stats.Rejected.ByName()
	s.HellosSent, s.UpdatesSent = stats.HellosSent, stats.UpdatesSent
	s.Flooding = Flooding{stats.Originated, stats.EntriesSent, stats.Changed, stats.Refreshed, stats.Repeated, stats.Older}
	s.Wire = wires
	for _, n := range neighbours {
		s.Neighbours = append(s.Neighbours, a.neighbour(n, wires.Ports[n.Port], now))
	}
	for _, e := range database {
		s.Database = append(s.Database, a.entry(t, e))
	}
	slices.SortFunc(s.Database, func(x, y Entry) int { return strings.Compare(x.Switch, y.Switch) })
	if a.repair != nil {
		s.Routes, s.Repairs = a.repair.status(), a.repair.repairs()
	}
	return s
}

func (a *Agent) neighbour(n topoupdate.Neighbour, w wire.PortStats, now time.Duration) Neighbour {
	out := Neighbour{
		Port: a.names[n.Port], Name: a.config.Topology.Node(n.Node).Name,
		State: "up", Why: n.Why, Since: (now - n.Since).Seconds(), Hears: n.Hears, Queued: n.Queued,
		Sent: w.Sent, Lost: w.SendErrors, Got: w.Received, Drops: w.Dropped, Late: n.Mistakes,
	}
	if n.Why == "" { // a server
		out.Why, out.Since = "carrier", 0
	}
	if !n.Carrier {
		out.Why = "no carrier"
	}
	if n.Strange {
		out.Why = a.strange(n)
	}
	switch {
	case !n.Up && n.Alive:
		out.State, out.Held = "held", (n.UpAt - now).Seconds()
	case !n.Up:
		out.State = "down"
	}
	return out
}

// strange says who speaks at a port in the neighbour's place.
func (a *Agent) strange(n topoupdate.Neighbour) string {
	t := a.config.Topology
	node, name := t.Node(n.Node).Name, t.Node(n.Stranger).Name
	switch {
	case n.Stranger == a.config.Self:
		return fmt.Sprintf("%s speaks there, as this switch calls itself: node: is wrong at one of the two, or the cable leads back here", name)
	case n.Stranger == n.Node:
		return fmt.Sprintf("%s speaks there by its port %d, not by the one of the topology: cables are swapped", name, n.StrangerPort)
	}
	return fmt.Sprintf("%s speaks there, not %s: cables are swapped, or node: is wrong at one of the ends", name, node)
}

func (a *Agent) entry(t *topology.Topology, e topoupdate.Entry) Entry {
	out := Entry{Switch: t.Node(e.Originator).Name, Incarnation: e.Incarnation, Sequence: e.Sequence, Age: e.Age.Seconds(), From: "itself"}
	if e.From != topoupdate.Own {
		out.From = t.Node(t.Ports(a.config.Self)[e.From].Peer).Name
	}
	ports := t.Ports(e.Originator)
	for _, p := range e.Down {
		out.Down = append(out.Down, t.LinkName(ports[p].Link))
	}
	return out
}

func linkNames(t *topology.Topology, links []topology.LinkID) []string {
	names := []string{}
	for _, l := range links {
		names = append(names, t.LinkName(l))
	}
	return names
}

// RouteStats counts what was done to the routes.
type RouteStats struct {
	Changed   uint64  `json:"changed"` // routes, since the start
	Updates   uint64  `json:"updates"` // times that the topology had changed
	Errors    uint64  `json:"errors"`
	LastError string  `json:"last_error,omitempty"` // empty when all is well again
	LastMS    float64 `json:"last_ms"`              // how long the last update took
}
