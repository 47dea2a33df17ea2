package capture

import (
	"fmt"
	"strconv"
	"time"

	"weft/flowcell"
)

// Bounds of a Timeline.
const (
	maxEvents      = 1 << 20
	maxConnections = 16
	maxFlying      = 1 << 16
)

// Timeline is what became of connections' segments over time, in the JSON of Chrome's trace
// events, which chrome://tracing and ui.perfetto.dev open. Each direction of a connection is a
// process. Its tracks are the paths, where a segment lasts from when it was sent to when it
// arrived, and the resequencer, where what is held lasts until it is let go. Segments that are
// sent again, and those that were seen leaving and never arriving, are marked.
//
// It keeps at most 2^20 events of 16 connections, the first ones; Dropped counts others. It is
// not safe for concurrent use.
type Timeline struct {
	events  []traceEvent
	start   time.Time
	pids    map[flowcell.FiveTuple]int
	tracks  map[track]int
	used    map[int]int // tracks of a process
	flying  map[segment]int
	order   []segment // of flying, the oldest first
	dropped uint64
}

// Causes of packets that nothing held up.
const (
	inOrder = "in-order"
	passed  = "passed"
)

// track names a line of a process.
type track struct {
	pid  int
	name string
}

// segment tells copies of one segment apart from others of its flow.
type segment struct {
	flow flowcell.FiveTuple
	seq  uint32
	id   uint16
}

// traceEvent is a trace event (Trace Event Format, "JSON Object Format").
type traceEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	Time  float64        `json:"ts"` // microseconds
	Dur   *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Cat   string         `json:"cat,omitempty"`
	Scope string         `json:"s,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// NewTimeline returns one without events.
func NewTimeline() *Timeline {
	return &Timeline{pids: make(map[flowcell.FiveTuple]int), tracks: make(map[track]int), used: make(map[int]int), flying: make(map[segment]int)}
}

// Dropped is how many packets had no place.
func (t *Timeline) Dropped() uint64 { return t.dropped }

// Add takes a packet. Only data of TCP counts.
func (t *Timeline) Add(r *Record, n *Note) {
	if n.Kind != KindData {
		return
	}
	if len(t.events) >= maxEvents {
		t.dropped++
		return
	}
	if t.start.IsZero() {
		t.start = r.At
	}
	s := segment{n.Packet.Flow, n.Packet.Seq, n.Packet.ID}
	switch {
	case r.Point == PointDelivered:
		t.delivered(r, n)
	case n.Path >= 0 && !n.Learned && r.Out:
		t.sent(s, r, n)
	case !r.Out:
		t.arrived(s, r)
	}
}

// sent begins a segment on its path's track, unless another interface has seen it before.
func (t *Timeline) sent(s segment, r *Record, n *Note) {
	if _, known := t.flying[s]; known {
		return
	}
	pid, ok := t.process(n.Packet.Flow)
	if !ok {
		return
	}
	name := fmt.Sprintf("seq %d", n.Packet.Seq)
	args := map[string]any{"seq": n.Packet.Seq, "bytes": n.Packet.Payload, "path": n.Path, "via": n.Bounce, "arrived": false}
	if n.Numbered {
		args["flowcell"], args["segment"] = n.Number.Cell(), n.Number.Index()
		name = fmt.Sprintf("%d.%d", n.Number.Cell(), n.Number.Index())
	}
	tid := t.track(pid, "path "+strconv.Itoa(n.Path)+" by "+n.Bounce)
	at, least := t.time(r.At), 1.0
	cat := "segment"
	if n.Again {
		cat = "retransmission"
		name = "again " + name
		t.events = append(t.events, traceEvent{Name: "sent again", Phase: "i", Time: at, PID: pid, TID: tid, Cat: cat, Scope: "t",
			Args: map[string]any{"seq": n.Packet.Seq}})
	}
	t.events = append(t.events, traceEvent{Name: name, Phase: "X", Time: at, Dur: &least, PID: pid, TID: tid, Cat: cat, Args: args})
	if len(t.order) >= maxFlying {
		delete(t.flying, t.order[0])
		t.order = t.order[1:]
	}
	t.flying[s] = len(t.events) - 1
	t.order = append(t.order, s)
}

// arrived ends a segment: it was seen last where it has got furthest.
func (t *Timeline) arrived(s segment, r *Record) {
	i, ok := t.flying[s]
	if !ok {
		return
	}
	e := &t.events[i]
	dur := max(t.time(r.At)-e.Time, 1)
	e.Dur = &dur
	e.Args["arrived"] = true
}

// delivered puts what the resequencer has let go on a track of its own.
func (t *Timeline) delivered(r *Record, n *Note) {
	pid, ok := t.process(n.Packet.Flow)
	if !ok {
		return
	}
	tid := t.track(pid, "resequencer")
	args := map[string]any{"seq": n.Packet.Seq, "bytes": n.Packet.Payload, "cause": r.Cause, "hold_us": float64(r.Hold) / 1e3}
	at := t.time(r.At)
	if r.Hold > 0 && r.Cause != inOrder && r.Cause != passed {
		from, dur := at-float64(r.Hold)/1e3, float64(r.Hold)/1e3
		t.events = append(t.events, traceEvent{Name: "held: " + r.Cause, Phase: "X", Time: from, Dur: &dur, PID: pid, TID: tid, Cat: "hold", Args: args})
	}
	t.events = append(t.events, traceEvent{Name: "released: " + r.Cause, Phase: "i", Time: at, PID: pid, TID: tid, Cat: "release", Scope: "t", Args: args})
}

// time is a time in the trace, in microseconds since its beginning.
func (t *Timeline) time(at time.Time) float64 { return float64(at.Sub(t.start)) / 1e3 }

// process returns the number of a flow's process.
func (t *Timeline) process(flow flowcell.FiveTuple) (pid int, ok bool) {
	if pid, ok = t.pids[flow]; ok {
		return pid, true
	}
	if len(t.pids) >= 2*maxConnections {
		t.dropped++
		return 0, false
	}
	pid = len(t.pids) + 1
	t.pids[flow] = pid
	return pid, true
}

// track returns the number of a line of a process, which places gives places (lanes).
func (t *Timeline) track(pid int, name string) int {
	k := track{pid, name}
	if tid, ok := t.tracks[k]; ok {
		return tid
	}
	t.used[pid]++
	t.tracks[k] = t.used[pid] * maxLanes
	return t.tracks[k]
}
