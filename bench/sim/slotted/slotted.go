// Package slotted is the queue model of DRB's Appendix B: a fat-tree in which all packets
// are of one length, a port sends one of them in a slot, and a queue follows
//
//	q(t+1) = (q(t) - 1)⁺ + Σ f(t+1)
//
// where f are the packets that arrive. It drives weft's own drb.Selector. The appendix
// models a hop by independent queues. This package models the whole fabric, so that hops
// 4 and 5 need no approximation.
//
// The package is pure: no I/O, no clock, no goroutine.
package slotted

import (
	"fmt"
	"math/rand/v2"

	"weft/drb"
)

// hops of a path between pods: up from the edge and the aggregation switch, down
// from the core, the aggregation and the edge switch.
const hops = 5

// Config is one run.
type Config struct {
	Ports int     // of a switch, n in the paper; even, from 4 to 64
	Load  float64 // probability that a host begins a packet in a slot, above 0, to 1
	Rule  drb.Rule
	// EqualStarts has all hosts start at the first step of their order. Otherwise
	// each starts at a random one.
	EqualStarts bool
	// hops is the number of hops to model, from 1 to hops; packets vanish behind the
	// last.
	Hops int
	// Slots is the number of measured slots, after Warmup slots. All queues are empty at
	// first.
	Slots, Warmup int
	Seed          uint64
}

// Result holds the queue lengths by hop, from 0: of all ports in all measured slots.
type Result struct {
	Lengths    [hops]Lengths
	PacketHops uint64 // of the whole run: packets that a port has sent
}

// maxUnderWay bounds the packets in all queues of the fabric.
const maxUnderWay = 1 << 25

func (c *Config) validate() error {
	switch {
	case c.Ports < 4 || c.Ports > 64 || c.Ports%2 != 0:
		return fmt.Errorf("slotted: Ports is %d: make it an even number from 4 to 64", c.Ports)
	case !(c.Load > 0 && c.Load <= 1):
		return fmt.Errorf("slotted: Load is %v: make it more than 0 and at most 1", c.Load)
	case c.Rule > drb.Random:
		return fmt.Errorf("slotted: Rule is %v: take one that chooses for each packet", c.Rule)
	case c.Hops < 1 || c.Hops > hops:
		return fmt.Errorf("slotted: Hops is %d: make it 1 to %d", c.Hops, hops)
	case c.Slots < 1 || c.Warmup < 0:
		return fmt.Errorf("slotted: Slots is %d and Warmup %d: measure at least one slot", c.Slots, c.Warmup)
	}
	return nil
}

// Run simulates permutation traffic: every host sends to one other, every host
// receives from one other. Same Config, same Result.
func Run(c Config) (*Result, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	f, r := newFabric(&c), &Result{}
	for slot := range c.Warmup + c.Slots {
		f.step()
		if len(f.packets)-1 > maxUnderWay {
			return nil, fmt.Errorf("slotted: more than %d packets wait in slot %d: lower Slots or Load", maxUnderWay, slot)
		}
		if slot >= c.Warmup {
			for hop := range c.Hops {
				r.Lengths[hop].count(f.queues[hop])
			}
		}
	}
	r.PacketHops = f.sent
	return r, nil
}

// host is a sender of the permutation.
type host struct {
	selector drb.Selector
	to       int32
}

func newHosts(c *Config, rng *rand.Rand) []host {
	half := c.Ports / 2
	paths := make([]int, half*half)
	for i := range paths {
		paths[i] = i
	}
	order := c.Rule.Order([]int{half, half}, paths)
	hosts := make([]host, c.Ports*len(paths))
	for i, to := range cycle(len(hosts), rng) {
		hosts[i] = host{drb.NewSelector(c.Rule, order, rng.Uint64()), to}
		if c.EqualStarts {
			hosts[i].selector.StartAt(0)
		}
	}
	return hosts
}

// cycle returns a random permutation that moves everybody (Sattolo's algorithm).
func cycle(n int, rng *rand.Rand) []int32 {
	to := make([]int32, n)
	for i := range to {
		to[i] = int32(i)
	}
	for i := n - 1; i > 0; i-- {
		j := rng.IntN(i)
		to[i], to[j] = to[j], to[i]
	}
	return to
}

// FirstHopOfRandom returns the mean queue of random choices at the first hop, if n/2
// flows each begin a packet in a slot with probability 2ρ/n: ρ + (1 - 2/n)ρ² / 2(1-ρ).
func FirstHopOfRandom(ports int, load float64) float64 {
	return load + (1-2/float64(ports))*load*load/(2*(1-load))
}
