package lab

import (
	"fmt"
	"time"

	"weft/fabric"
)

// Meter makes a lab meter all ports of its switches: see fabric.AttachMeter.
type Meter struct {
	// ECNBytes is the queue length, in bytes, from which a port of RateMbit marks packets.
	// For ports of another rate it is in proportion, like their queue. 0 means that no
	// packet is marked.
	ECNBytes int `json:"ecn_bytes,omitempty"`

	// RED is that of MeterPort; the zero value is none. Its lengths in bytes are for a port of
	// RateMbit, and for others in proportion, as ECNBytes.
	RED fabric.RED `json:"red,omitzero"`

	Tau     time.Duration `json:"tau,omitempty"`      // see MeterPort; 0: by the port's rate
	QCMUnit int           `json:"qcm_unit,omitempty"` // bytes; 0 is encap.QCMUnit
}

// port returns a port of a rate in Mbit/s, metered.
func (m Meter) port(c Config, name string, mbit float64) fabric.MeterPort {
	queue, red := c.queueBytes(mbit), m.RED
	for _, l := range []*fabric.QueueLength{&red.Min, &red.Max} {
		l.Bytes = int(float64(l.Bytes) * mbit / c.RateMbit)
	}
	return fabric.MeterPort{
		Name: name, RateBits: mbit * 1e6, QueueBytes: queue, BurstBytes: c.BurstBytes,
		ECNBytes: min(queue, int(float64(m.ECNBytes)*mbit/c.RateMbit)), RED: red, Tau: m.Tau, QCMUnit: m.QCMUnit,
	}
}

func (c Config) checkMeter() error {
	switch {
	case c.Meter == nil:
		return nil
	case c.Unlimited:
		return fmt.Errorf("lab %s: Meter: links are unlimited, so there is no rate to measure against: leave Meter or Unlimited out", c.Name)
	}
	if err := c.Meter.port(c, "any", c.RateMbit).Check(); err != nil {
		return fmt.Errorf("lab %s: Meter: %w", c.Name, err)
	}
	return nil
}
