package papers

import (
	"time"

	"weft/bench/sim"
)

// WindowOf is a value of a decision in which each connection has a window of so many bytes.
func WindowOf(name string, bytes int) DecisionValue {
	return DecisionValue{Name: name, Tune: func(c *sim.Config) { c.TCP.WindowBytes = bytes }}
}

// InitialWindowOf is one in which each begins with so many segments.
func InitialWindowOf(name string, segments int) DecisionValue {
	return DecisionValue{Name: name, Tune: func(c *sim.Config) { c.TCP.InitialWindow = segments }}
}

// TimeoutOf is one in which retransmission timeouts are at least so long, and first, before any
// measurement, so long; 0: as TCP has it by itself.
func TimeoutOf(name string, least, first time.Duration) DecisionValue {
	return DecisionValue{Name: name, Tune: func(c *sim.Config) { c.TCP.RTOMin, c.TCP.RTOInitial = least, first }}
}
