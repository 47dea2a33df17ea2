package faults

import (
	"strings"
	"time"
)

// DefaultWithin is how long the tools have to name a cause.
const DefaultWithin = 10 * time.Second

// Result is what became of a fault.
type Result struct {
	Fault string `json:"fault"`
	What  string `json:"what"`
	Cause string `json:"cause"` // what names it
	// At are the nodes or links of which one has to be named; empty: the fault is at the node
	// that is asked.
	At []string `json:"at,omitempty"`
	// Told is the tool that named the cause first; "": none.
	Told    Tool    `json:"told_by"`
	Seconds float64 `json:"seconds"` // since the fault, or the daemon's start under it
	Said    string  `json:"said"`
	// Others is what the tools said at the end, and Before what else they said first before
	// one of them named the cause.
	Others map[Tool]string `json:"others,omitempty"`
	Before []string        `json:"before,omitempty"`
	// Known is what the doctor has found before anything was broken. It does not count.
	Known []string `json:"known,omitempty"`
	Error string   `json:"error,omitempty"` // the fault could not be injected or healed
}

// Alarm is what a tool said while nothing was wrong.
type Alarm struct {
	Tool    Tool    `json:"tool"`
	Seconds float64 `json:"seconds"`
	Said    string  `json:"said"`
}

// Health is how the tools did without faults.
type Health struct {
	Seconds float64 `json:"seconds"`
	Asked   int     `json:"asked"` // times
	Alarms  []Alarm `json:"alarms"`
	Mbit    float64 `json:"mbit_s"` // of TCP, all connections together
}

// without takes a key of YAML and what is below it away.
func without(config, key string) string {
	var kept []string
	in := false
	for _, l := range strings.SplitAfter(config, "\n") {
		if !strings.HasPrefix(l, " ") {
			in = strings.HasPrefix(l, key)
		}
		if !in {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "")
}
