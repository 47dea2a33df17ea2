package workload

import "time"

// merged is several Sources as one.
type merged struct {
	sources []Source
	next    []Flow // of each source, if ok
	ok      []bool
}

// Merge returns the flows of all sources in the order of Start. Of flows that start at
// the same time, those of earlier sources come first. Each source gets only the ends of
// its own flows. There may be up to 255 sources.
func Merge(sources ...Source) Source {
	var m merged
	for _, s := range sources {
		// Flows have room for one source: a merger of mergers is one merger.
		if inner, ok := s.(*merged); ok {
			m.sources = append(m.sources, inner.sources...)
			m.next = append(m.next, inner.next...)
			m.ok = append(m.ok, inner.ok...)
			continue
		}
		f, ok := s.Next()
		m.sources, m.next, m.ok = append(m.sources, s), append(m.next, f), append(m.ok, ok)
	}
	if len(m.sources) > 255 {
		panic("workload: more than 255 sources are merged")
	}
	return &m
}

func (m *merged) Next() (Flow, bool) {
	best := -1
	for i, ok := range m.ok {
		if ok && (best < 0 || m.next[i].Start < m.next[best].Start) {
			best = i
		}
	}
	if best < 0 {
		return Flow{}, false
	}
	f := m.next[best]
	f.source = uint8(best)
	m.next[best], m.ok[best] = m.sources[best].Next()
	return f, true
}

func (m *merged) Done(f Flow, at time.Duration, begin func(Flow)) {
	source := f.source
	m.sources[source].Done(f, at, func(next Flow) {
		next.source = source
		begin(next)
	})
}
