package fabric

import (
	"errors"
	"fmt"
	"time"

	"weft/encap"
)

// MeterConfig says which ports of a switch are metered, and how.
type MeterConfig struct {
	Ports []MeterPort // 1 to 1,024

	// Extensions run behind the meter, in this order, for each packet that leaves a port; at
	// most 8. One that cannot be loaded is left out (Meter.Extensions). They run until the
	// Meter is closed, and in all processes that inherit it.
	Extensions []Extension
}

// MeterPort is a port with a virtual queue: a leaky bucket that is filled by what
// leaves the port and drained at the link's rate, as a queue behind it would be
// (thesis §5.2.1).
type MeterPort struct {
	Name string

	// RateBits is the link's, in bit/s, Ethernet headers included. 0: that of the port's
	// token bucket (tbf), or else the speed that the device says it has. If the rate is the
	// bucket's, so are QueueBytes and BurstBytes if both are 0.
	RateBits float64

	// QueueBytes is the size of the real queue: packets dropped there must not count
	// as waiting. 0 is one second at RateBits. Where the real one is bounded in packets
	// (pfifo, pfifo_fast), it drops at another length than the virtual one, which is then
	// too long or too short until the queue is empty or full.
	QueueBytes int

	// BurstBytes may leave ahead of the rate, as out of a token bucket (tbf's
	// burst): only further bytes wait. 0 for a real link.
	BurstBytes int

	// ECN is the length of the queue from which packets that are capable of ECN are marked,
	// on their outermost header. If it is less than a packet, all that wait behind another
	// are. Zero: no packet is marked. ECNBytes is the same in bytes; give one of the two.
	ECN      QueueLength
	ECNBytes int

	// RED marks or drops packets by the average of the queue. Give it or ECN, not both.
	RED RED

	// QCN has senders told that their packets make the queue too long, besides ECN or RED.
	QCN QCN

	Tau     time.Duration // time constant of the discounting rate estimator (CONGA §3.2), at least 16 ns; 0 is DefaultTau(RateBits)
	QCMUnit int           // bytes of queue that count as 1 in a sample's metric; 0 is encap.QCMUnit
}

// PortMeter is a metered port at one moment. Counters are since the meter was
// attached and cover packets that came to the port's queue. Super-segments count
// as the packets they become, with their headers.
type PortMeter struct {
	Port     string  `json:"port"`
	RateBits float64 `json:"rate_bits"` // that the virtual queue drains at
	Length   uint64  `json:"length"`    // bytes in the virtual queue now
	Max      uint64  `json:"max"`       // bytes in it at most
	ECNBytes uint64  `json:"ecn_bytes"` // of queue above which packets are marked; 0: none is
	DRE      uint8   `json:"dre"`       // the metric of CONGA: the load in eighths, rounded down, at most 7
	Load     float64 `json:"load"`      // over the last tau, as a share of the rate
	Packets  uint64  `json:"packets"`
	Bytes    uint64  `json:"bytes"`    // of Ethernet frames without checksum
	Marks    uint64  `json:"marks"`    // packets that CE was set on; super-segments count once
	Samples  uint64  `json:"samples"`  // probes of congestion that the length was added to
	Raised   uint64  `json:"raised"`   // CONGA's marks whose metric was raised
	Overflow uint64  `json:"overflow"` // packets that the virtual queue had no room for
	Drops    uint64  `json:"drops"`    // packets that the real queue dropped, modulo 2³²
	RED      PortRED `json:"red,omitzero"`
	QCN      PortQCN `json:"qcn,omitzero"`
}

// DefaultTau returns the time of 133 full packets at a rate in bit/s, at least 160 µs and
// at most a minute. 160 µs are 133 packets at 10 Gbit/s: CONGA's value (§3.6), scaled to
// slower links, where packets and round trips take longer.
func DefaultTau(rateBits float64) time.Duration {
	return time.Duration(max(160e3, min(float64(maxTau), 133*1500*8/rateBits*1e9)))
}

const (
	maxMeterPorts  = 1024
	maxMeterBits   = 1e12
	maxMeterQueue  = 1 << 33 // so that no product of the program's overflows
	minTau, maxTau = dreTicks * time.Nanosecond, time.Minute
	maxTauBytes    = dreMost / dreScale / 4 // at the full rate
)

func (c MeterConfig) complete() (MeterConfig, error) {
	if len(c.Ports) == 0 || len(c.Ports) > maxMeterPorts {
		return c, fmt.Errorf("Ports has %d ports, must have 1 to %d", len(c.Ports), maxMeterPorts)
	}
	if err := CheckExtensions(c.Extensions); err != nil {
		return c, err
	}
	ports := make([]MeterPort, len(c.Ports))
	seen := make(map[string]bool)
	for i, p := range c.Ports {
		var err error
		if ports[i], err = p.complete(); err != nil {
			return c, fmt.Errorf("port %q: %w", p.Name, err)
		}
		if seen[p.Name] {
			return c, fmt.Errorf("port %q is there twice; leave one out", p.Name)
		}
		seen[p.Name] = true
	}
	c.Ports = ports
	return c, nil
}

// Check says what of the port is wrong.
func (p MeterPort) Check() error {
	_, err := p.complete()
	return err
}

// complete returns the port with its defaults filled in.
func (p MeterPort) complete() (MeterPort, error) {
	if p.Name == "" {
		return p, errors.New("Name is empty; give the device's")
	}
	if !(p.RateBits >= 8000 && p.RateBits <= maxMeterBits) {
		return p, fmt.Errorf("RateBits is %g, must be from 8000 to %g bit/s", p.RateBits, maxMeterBits)
	}
	if p.QueueBytes == 0 {
		p.QueueBytes = int(min(p.RateBits/8, maxMeterQueue/2))
	}
	if p.Tau == 0 {
		p.Tau = DefaultTau(p.RateBits)
	}
	if p.QCMUnit == 0 {
		p.QCMUnit = encap.QCMUnit
	}
	if err := p.ECN.Check(); err != nil {
		return p, fmt.Errorf("ECN %w", err)
	}
	if p.ECN != (QueueLength{}) {
		if p.ECNBytes != 0 {
			return p, fmt.Errorf("ECN is %v and ECNBytes is %d; give one", p.ECN, p.ECNBytes)
		}
		if n := p.ECN.At(p.RateBits); n > p.QueueBytes {
			return p, fmt.Errorf("ECN is %v, %d bytes at %g bit/s, must be at most the queue's %d: nothing would be marked above", p.ECN, n, p.RateBits, p.QueueBytes)
		}
		p.ECN, p.ECNBytes = QueueLength{}, p.ECN.At(p.RateBits)
	}
	var err error
	if p.RED, err = p.RED.complete(p.RateBits, p.QueueBytes); err != nil {
		return p, err
	}
	if p.QCN, err = p.QCN.complete(p.RateBits, p.QueueBytes); err != nil {
		return p, err
	}
	switch {
	case p.RED != (RED{}) && p.ECNBytes != 0:
		return p, errors.New("both ECN and RED are given, and both mark; leave one out")
	case p.QueueBytes < 0 || p.QueueBytes > maxMeterQueue/2:
		return p, fmt.Errorf("QueueBytes is %d, must be from 0 to %d", p.QueueBytes, maxMeterQueue/2)
	case p.BurstBytes < 0 || p.BurstBytes > maxMeterQueue/2:
		return p, fmt.Errorf("BurstBytes is %d, must be from 0 to %d", p.BurstBytes, maxMeterQueue/2)
	case p.ECNBytes < 0 || p.ECNBytes > p.QueueBytes:
		return p, fmt.Errorf("ECNBytes is %d, must be from 0 to the queue's %d: nothing would be marked above", p.ECNBytes, p.QueueBytes)
	case p.Tau < minTau || p.Tau > maxTau:
		return p, fmt.Errorf("Tau is %v, must be from %v to %v", p.Tau, minTau, maxTau)
	case p.RateBits/8*p.Tau.Seconds() > maxTauBytes:
		return p, fmt.Errorf("Tau is %v, at %g bit/s it must be at most %v", p.Tau, p.RateBits, time.Duration(maxTauBytes*8/p.RateBits*1e9))
	case p.QCMUnit < 1 || p.QCMUnit > maxMeterQueue/2:
		return p, fmt.Errorf("QCMUnit is %d, must be 1 or more bytes", p.QCMUnit)
	}
	return p, nil
}
