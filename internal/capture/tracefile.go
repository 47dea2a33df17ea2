package capture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// maxLanes is how many lines a track takes at most. What one line shows must not overlap.
const maxLanes = 64

// lane is a line of a track.
type lane struct{ pid, tid int }

// WriteTo writes the trace. It may be called more than once, also between packets.
func (t *Timeline) WriteTo(w io.Writer) (int64, error) {
	events, used := t.lanes()
	all := make([]traceEvent, 0, len(events)+len(t.pids)+len(used))
	for flow, pid := range t.pids {
		all = append(all, meta(pid, 0, "process_name", flow.String()))
	}
	for k, tid := range t.tracks {
		all = append(all, meta(k.pid, tid, "thread_name", k.name))
		for i := 1; i < used[lane{k.pid, tid}]; i++ {
			all = append(all, meta(k.pid, tid+i, "thread_name", fmt.Sprintf("%s (%d)", k.name, i+1)))
		}
	}
	slices.SortFunc(all, func(a, b traceEvent) int { return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID)) })
	all = append(all, events...)
	b, err := json.Marshal(map[string]any{ // the format's own keys
		"traceEvents": all, "displayTimeUnit": "ms",
		"otherData": map[string]string{"by": "weft capture", "start": t.start.UTC().Format(time.RFC3339Nano), "dropped": strconv.FormatUint(t.dropped, 10)},
	})
	if err != nil {
		return 0, err
	}
	n, err := w.Write(append(b, '\n'))
	return int64(n), err
}

// lanes returns the events in the order of their times, each on a line of its track that is
// free then, and how many lines each track takes. Where all are taken, the last one is shared.
func (t *Timeline) lanes() (events []traceEvent, used map[lane]int) {
	events = slices.Clone(t.events)
	slices.SortStableFunc(events, func(a, b traceEvent) int { return cmp.Compare(a.Time, b.Time) })
	used = make(map[lane]int)
	ends := make(map[lane][]float64)
	for i := range events {
		e := &events[i]
		if e.Dur == nil {
			continue
		}
		k := lane{e.PID, e.TID}
		free := slices.IndexFunc(ends[k], func(end float64) bool { return end <= e.Time })
		switch {
		case free >= 0:
		case len(ends[k]) < maxLanes:
			free = len(ends[k])
			ends[k] = append(ends[k], 0)
		default:
			free = maxLanes - 1
		}
		ends[k][free] = e.Time + *e.Dur
		used[k] = max(used[k], free+1)
		e.TID += free
	}
	return events, used
}

func meta(pid, tid int, kind, name string) traceEvent {
	return traceEvent{Name: kind, Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}}
}
