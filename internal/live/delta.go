package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Delta is what differs between a frame and the one with the number Base. Base 0 stands for none:
// all is in it. Lists are whole where they differ, and nil where they do not.
type Delta struct {
	Seq     uint64       `json:"seq"`
	Base    uint64       `json:"base"`
	At      time.Time    `json:"at"`
	Seconds float64      `json:"seconds"`
	Fabric  int          `json:"fabric"`
	Links   []LinkChange `json:"links"`

	Conns    *[]Conn    `json:"conns,omitempty"`
	Ways     *[]Way     `json:"ways,omitempty"`
	Hosts    *[]Host    `json:"hosts,omitempty"`
	Suspects *[]Suspect `json:"suspects,omitempty"`
	Failures *[]Failure `json:"failures,omitempty"`

	Events  []Event `json:"events"` // of the frame
	Total   Total   `json:"total"`
	Trouble string  `json:"trouble,omitempty"`
	More    int     `json:"more,omitempty"`
}

// LinkChange is a link that differs. In JSON it is a list, as there may be thousands: position,
// state as a number, members that are bad, and rate, queue, drops, use and loss of either
// direction, that of the lower end first.
type LinkChange struct {
	Link int
	LinkFrame
}

// MarshalJSON writes the list.
func (c LinkChange) MarshalJSON() ([]byte, error) {
	b := fmt.Appendf(nil, "[%d,%d,%d", c.Link, c.State, c.Bad)
	for _, f := range []*Flow{&c.Up, &c.Down} {
		b = fmt.Appendf(b, ",%g,%d,%d,%g,%g", f.Rate, f.Queue, f.Drops, f.Use, f.Loss)
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads the list.
func (c *LinkChange) UnmarshalJSON(text []byte) error {
	var state State
	var up, down Flow
	fields := []any{&c.Link, (*uint8)(&state), &c.Bad}
	for _, f := range []*Flow{&up, &down} {
		fields = append(fields, &f.Rate, &f.Queue, &f.Drops, &f.Use, &f.Loss)
	}
	var values []json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	if len(values) != len(fields) {
		return fmt.Errorf("link: %d values, want %d", len(values), len(fields))
	}
	for i, v := range values {
		if err := json.Unmarshal(v, fields[i]); err != nil {
			return err
		}
	}
	c.State, c.Up, c.Down = state, up, down
	return nil
}

// Diff returns what differs in f. before nil, or of another Fabric, stands for none.
func Diff(before, f *Frame) *Delta {
	d := &Delta{Seq: f.Seq, At: f.At, Seconds: f.Seconds, Fabric: f.Fabric, Links: []LinkChange{},
		Events: f.Events, Total: f.Total, Trouble: f.Trouble, More: f.More}
	if before == nil || before.Fabric != f.Fabric || len(before.Links) != len(f.Links) {
		for i, l := range f.Links {
			d.Links = append(d.Links, LinkChange{i, l})
		}
		d.Conns, d.Ways, d.Hosts, d.Suspects, d.Failures = &f.Conns, &f.Ways, &f.Hosts, &f.Suspects, &f.Failures
		return d
	}
	d.Base = before.Seq
	for i, l := range f.Links {
		if l != before.Links[i] {
			d.Links = append(d.Links, LinkChange{i, l})
		}
	}
	d.Conns = changed(before.Conns, f.Conns)
	d.Ways = changed(before.Ways, f.Ways)
	d.Hosts = changed(before.Hosts, f.Hosts)
	d.Failures = changed(before.Failures, f.Failures)
	if !slices.EqualFunc(before.Suspects, f.Suspects, Suspect.equal) {
		d.Suspects = &f.Suspects
	}
	return d
}

func changed[T comparable](before, now []T) *[]T {
	if slices.Equal(before, now) {
		return nil
	}
	return &now
}

func (s Suspect) equal(o Suspect) bool {
	return s.Host == o.Host && s.Why == o.Why && s.Loss == o.Loss && s.Lost == o.Lost && slices.Equal(s.Places, o.Places)
}

// Apply returns the frame of a Delta. before is the one with the number Base, for links links; it
// is not changed.
func (d *Delta) Apply(before *Frame, links int) (*Frame, error) {
	f := &Frame{Links: make([]LinkFrame, links), Conns: []Conn{}, Ways: []Way{}, Hosts: []Host{}, Suspects: []Suspect{}, Failures: []Failure{}}
	if d.Base != 0 {
		if before == nil || before.Seq != d.Base || before.Fabric != d.Fabric || len(before.Links) != links {
			return nil, fmt.Errorf("delta %d: it is to frame %d", d.Seq, d.Base)
		}
		*f = *before
		f.Links = slices.Clone(before.Links)
	}
	f.Seq, f.At, f.Seconds, f.Fabric = d.Seq, d.At, d.Seconds, d.Fabric
	f.Events, f.Total, f.Trouble, f.More = some(d.Events), d.Total, d.Trouble, d.More
	for _, c := range d.Links {
		if c.Link < 0 || c.Link >= links {
			return nil, errors.New("delta: a link that the fabric does not have")
		}
		f.Links[c.Link] = c.LinkFrame
	}
	replace(&f.Conns, d.Conns)
	replace(&f.Ways, d.Ways)
	replace(&f.Hosts, d.Hosts)
	replace(&f.Suspects, d.Suspects)
	replace(&f.Failures, d.Failures)
	return f, nil
}

func replace[T any](list *[]T, now *[]T) {
	if now != nil {
		*list = some(*now)
	}
}
