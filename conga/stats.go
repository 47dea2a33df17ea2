package conga

import "time"

// Stats of a Table, since New.
type Stats struct {
	Destinations int    `json:"destinations"` // racks to which something is sent
	Sources      int    `json:"sources"`      // racks from which something has come
	Evicted      uint64 `json:"evicted"`      // racks forgotten to make room
	Refused      uint64 `json:"refused"`      // reports from racks to which nothing is sent
}

// Stats returns the counters.
func (t *Table) Stats() Stats {
	return Stats{
		Destinations: len(t.to.entries),
		Sources:      len(t.from.entries),
		Evicted:      t.to.evicted + t.from.evicted,
		Refused:      t.refused,
	}
}

// Destination is what a Table knows of the paths to a rack.
type Destination struct {
	Destination uint32   `json:"destination"`
	Tags        []TagUse `json:"tags"` // those chosen or reported, ascending
}

// TagUse is what is known of the paths of one LBTag to a rack.
type TagUse struct {
	Tag    uint8         `json:"tag"`
	Local  uint8         `json:"local"`  // of what this host has sent by the tag, to all racks
	Remote uint8         `json:"remote"` // as reported, aged
	Age    time.Duration `json:"age"`    // ns since the report; -1 if there was none
	Chosen uint64        `json:"chosen"` // flowlets that took it
}

// Destinations returns what is known of all racks to which something is sent, in no
// order. The caller owns the slice.
func (t *Table) Destinations(now time.Duration) []Destination {
	list := make([]Destination, len(t.to.entries))
	for i := range t.to.entries {
		e := &t.to.entries[i]
		list[i] = Destination{e.id, t.uses(&e.v, now)}
	}
	return list
}

func (t *Table) uses(row *outward, now time.Duration) (uses []TagUse) {
	for i := range Tags {
		reported := row.known>>i&1 != 0
		if !reported && row.chosen[i] == 0 {
			continue
		}
		u := TagUse{Tag: uint8(i), Local: t.local[i].Metric(now), Age: -1, Chosen: row.chosen[i]}
		if reported {
			u.Remote, u.Age = row.remote(i, now, t.config.Age), now-row.at[i]
		}
		uses = append(uses, u)
	}
	return uses
}
