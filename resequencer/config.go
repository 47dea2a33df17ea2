package resequencer

import (
	"fmt"
	"time"
)

// Defaults of Config. While a flow's hole is waited for, its sender can be
// ahead by no more than TCP's window, which is what the bounds per flow
// allow for.
const (
	DefaultHold         = 10 * time.Millisecond // DRB §5
	DefaultFlowPackets  = 8192
	DefaultFlowBytes    = 16 << 20
	DefaultTotalPackets = 65536
	DefaultTotalBytes   = 64 << 20
	DefaultFlows        = 65536
)

// MaxHold is the longest Config.Hold: long after it, TCP has given up.
const MaxHold = time.Hour

// Config says how long packets are held and how many. Zero means the default
// of the same name. Over a bound packets are delivered early, never dropped.
type Config struct {
	Hold time.Duration // longest a packet waits for a hole, at most MaxHold
	Off  bool          // deliver everything in order of arrival, only count

	FlowPackets, FlowBytes   int // most held for one flow
	TotalPackets, TotalBytes int // most held in all

	// Flows is the most flows remembered, closed ones included: these must
	// still recognise a retransmission. The one idle longest is forgotten.
	Flows int
}

// Validate names the first field that makes no sense and what would.
func (c Config) Validate() error {
	if c.Hold < 0 || c.Hold > MaxHold {
		return fmt.Errorf("resequencer: Hold is %v; want more than 0 and at most %v, or 0 for %v", c.Hold, MaxHold, DefaultHold)
	}
	for _, f := range []struct {
		name     string
		value    int
		standard int
	}{
		{"FlowPackets", c.FlowPackets, DefaultFlowPackets},
		{"FlowBytes", c.FlowBytes, DefaultFlowBytes},
		{"TotalPackets", c.TotalPackets, DefaultTotalPackets},
		{"TotalBytes", c.TotalBytes, DefaultTotalBytes},
		{"Flows", c.Flows, DefaultFlows},
	} {
		if f.value < 0 {
			return fmt.Errorf("resequencer: %s is %d; want more than 0, or 0 for %d", f.name, f.value, f.standard)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Hold = min(orDefault(c.Hold, DefaultHold), MaxHold)
	c.FlowPackets = orDefault(c.FlowPackets, DefaultFlowPackets)
	c.FlowBytes = orDefault(c.FlowBytes, DefaultFlowBytes)
	c.TotalPackets = orDefault(c.TotalPackets, DefaultTotalPackets)
	c.TotalBytes = orDefault(c.TotalBytes, DefaultTotalBytes)
	c.Flows = orDefault(c.Flows, DefaultFlows)
	return c
}

// orDefault takes a value that makes no sense for one not given, so that a
// Config that nobody validated cannot unbound the buffer.
func orDefault[T int | time.Duration](v, standard T) T {
	if v <= 0 {
		return standard
	}
	return v
}
