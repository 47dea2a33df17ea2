package simnet

import (
	"fmt"
	"time"

	"weft/topology"
)

// Direction is one of the two of a link.
type Direction uint8

// The directions.
const (
	Upward   Direction = iota // towards the core
	Downward                  // towards the hosts
)

// Impairment is what is wrong with one direction of a link; the zero value is
// nothing. Nobody is told: neither hosts nor switches send around it before
// SetTopology or SetRoutes.
type Impairment struct {
	// Down makes the link carry nothing. What is on it is lost, unless it is up
	// again when it would have arrived.
	Down bool
	// Loss, Corrupt and Duplicate are probabilities per packet, from 0 to 1.
	// All of them strike behind the queue: what is lost has taken its time on
	// the link. Corrupt flips one bit anywhere in the packet, which a switch
	// notices in an IP header and else nobody but the receiver. A copy follows
	// its original through the queue, and is spared.
	Loss, Corrupt, Duplicate float64
	// LossAbove spares packets of up to so many bytes, outer headers included,
	// from Loss: a link may lose all data and pass probes and acknowledgements.
	LossAbove int
	// Delay is besides Config.Delay. Less than before lets packets overtake
	// those that are on the link.
	Delay time.Duration
	// RateBits is the rate for what is sent from now on, up to 1e12; 0 means
	// that of the link as it was built. What is in the queue leaves at the old rate.
	RateBits int64
}

func (i *Impairment) validate() error {
	for _, p := range []struct {
		name  string
		value float64
	}{{"Loss", i.Loss}, {"Corrupt", i.Corrupt}, {"Duplicate", i.Duplicate}} {
		if !(p.value >= 0 && p.value <= 1) { // not a number: neither
			return fmt.Errorf("simnet: Impairment.%s is %v, must be from 0 to 1", p.name, p.value)
		}
	}
	switch {
	case i.Delay < 0 || i.Delay > time.Hour:
		return fmt.Errorf("simnet: Impairment.Delay is %v, must be from 0 to an hour", i.Delay)
	case i.RateBits < 0 || i.RateBits > maxRateBits:
		return fmt.Errorf("simnet: Impairment.RateBits is %d, must be from 1 to 1e12, or 0 for the link's own", i.RateBits)
	case i.LossAbove < 0:
		return fmt.Errorf("simnet: Impairment.LossAbove is %d, must be the length of a packet in bytes, or 0 for all", i.LossAbove)
	}
	return nil
}

// Impair replaces what is wrong with one direction of a link, which must be one
// of the topology.
func (n *Network) Impair(id topology.LinkID, d Direction, i Impairment) error {
	if err := i.validate(); err != nil {
		return err
	}
	p := &n.ports[2*int(id)+int(d)]
	p.impairment = i
	p.impaired = i.Loss > 0 || i.Corrupt > 0 || i.Duplicate > 0
	rate := i.RateBits
	if rate == 0 {
		rate = p.built
	}
	if rate != p.rate {
		p.setRate(rate)
	}
	return nil
}

// impair does to p what chance wants, and returns how many packets are left of
// it: 0, 1 or 2.
func (n *Network) impair(p *packet, i *Impairment) (copies int) {
	if len(p.data) > i.LossAbove && n.happens(i.Loss) {
		return 0
	}
	if n.happens(i.Corrupt) {
		bit := n.chance.Uint64() % uint64(8*len(p.data))
		p.data[bit/8] ^= 1 << (bit % 8)
		p.corrupt = true
		n.stats.Corrupted++
	}
	if n.happens(i.Duplicate) {
		return 2
	}
	return 1
}

// happens draws only where there is a choice.
func (n *Network) happens(probability float64) bool {
	if probability <= 0 {
		return false
	}
	return float64(n.chance.Uint64()>>11)/(1<<53) < probability
}

// repeat sends a copy of p, which has just been sent.
func (n *Network) repeat(index int32, p *packet, at time.Duration) {
	out := &n.ports[index]
	again := n.newPacket(p.data)
	again.corrupt = p.corrupt
	n.stats.Duplicated++
	done, ok := out.send(len(again.data)+FrameOverhead, at)
	if !ok {
		n.drop(again, QueueFull)
		return
	}
	n.events.Add(done+n.config.Delay+out.impairment.Delay, event{index, again})
}
