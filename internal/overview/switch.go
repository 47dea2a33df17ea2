package overview

import (
	"encoding/json"
	"fmt"
)

// Switch is what a switch's View needs of its status. Package switchd says what the fields
// mean.
type Switch struct {
	Switch     string            `json:"switch"`
	Topology   string            `json:"topology"`
	Process    int               `json:"process"`
	Uptime     float64           `json:"uptime_s"`
	Down       []string          `json:"down"`
	Neighbours []Neighbour       `json:"neighbours"`
	Database   []Told            `json:"database"`
	Routes     *Routes           `json:"routes"`
	Repairs    *SwitchRepairs    `json:"repairs"`
	Signed     bool              `json:"signed"`
	Received   uint64            `json:"received"`
	Rejected   map[string]uint64 `json:"rejected"`

	Meters     []Meter     `json:"meters"`
	Extensions []Extension `json:"extensions"`
	MeterError string      `json:"meter_error"`
	Feedback   *struct {
		Ended string `json:"ended"`
	} `json:"feedback"`
	Balance *struct {
		Rule string `json:"rule"`
	} `json:"balance"`
	Classifier *struct {
		Rule string `json:"rule"`
	} `json:"classifier"`
	Scheduler    *Scheduler `json:"scheduler"`
	BalanceError string     `json:"balance_error"`
	Decap        *Outer     `json:"decap"`
	Edge         *Outer     `json:"edge"`
	Labels       *Outer     `json:"labels"`
	CounterError string     `json:"counter_error"`
	Error        string     `json:"error"`
}

// Neighbour is a port and who is behind it.
type Neighbour struct {
	Port  string  `json:"port"`
	Name  string  `json:"neighbour"`
	State string  `json:"state"`
	Why   string  `json:"why"`
	Since float64 `json:"since_s"`
	Held  float64 `json:"held_s"`
	Hears bool    `json:"hears"`
	Drops uint64  `json:"dropped"`
	Late  uint64  `json:"late"`
}

// Told is what a switch says of itself.
type Told struct {
	Switch string   `json:"switch"`
	Down   []string `json:"down"`
}

// Routes counts what was done to the routes.
type Routes struct {
	LastError string `json:"last_error"`
}

// SwitchRepairs is what the agent has put right, and cannot.
type SwitchRepairs struct {
	Count   uint64   `json:"count"`
	Last    []string `json:"last"`
	Trouble string   `json:"trouble"`
}

// Meter is a port's queue and load.
type Meter struct {
	Port   string  `json:"port"`
	Rate   float64 `json:"rate_bits"`
	Length uint64  `json:"length"`
	Load   float64 `json:"load"`
	Bytes  uint64  `json:"bytes"`
	Marks  uint64  `json:"marks"`
	Drops  uint64  `json:"drops"`
}

// Extension is a user's program at the meters.
type Extension struct {
	Extension string `json:"extension"`
	Error     string `json:"error"`
}

// Outer counts packets whose outer header or labels end at the switch. All but the first two
// are drops.
type Outer struct {
	Decapsulated uint64 `json:"decapsulated"`
	Popped       uint64 `json:"popped"`
	Spoofed      uint64 `json:"spoofed"`
	Forged       uint64 `json:"forged"`
	Nested       uint64 `json:"nested"`
	ECN          uint64 `json:"ecn"`
	Malformed    uint64 `json:"malformed"`
	Unknown      uint64 `json:"unknown"`
	Ended        uint64 `json:"ended"`
	Expired      uint64 `json:"expired"`
}

// ParseSwitch reads a switch's status.
func ParseSwitch(text []byte) (s Switch, err error) {
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("status: %w", err)
	}
	return s, nil
}
