package balance

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// Engine is what a CPU of a switch keeps of a set. DRILL §3.2 calls a part of a switch that
// decides by itself an engine. It is struct engine of fabric/bpf/balance.c.
type Engine struct {
	Random     uint64 // state of the generator; 0: it has none yet
	Turn       uint32 // of RRB
	Remembered uint32 // how many of Least are
	Least      [MaxMemory]uint32
}

// Flowlet is a place in the table of flowlets, struct flowlet of fabric/bpf/balance.c.
type Flowlet struct {
	Flow uint32 // who has it
	Hash uint32 // of its packets
	Last uint64 // ns of the monotonic clock: when its latest packet came; 0: it is free
}

// Places in tables that all sets share. Who is sent to a place that is taken shares it, if
// it is a pair's turn, and takes it over, if it is a flowlet's.
const (
	Pairs    = 1 << 16
	Flowlets = 1 << 16
)

// Packet is what a rule knows of a packet.
type Packet struct {
	Src, Dst   uint32     // IPv4 addresses
	Src6, Dst6 netip.Addr // IPv6 addresses; the zero Addr of an IPv4 packet
	Protocol   uint8
	// Ports are source and destination. Of IPv4 they are 0 for fragments, and without ports. Of
	// IPv6 the flow label stands for ports that are not right behind the header.
	Ports uint32
}

// Chooser decides as the program on one CPU does.
type Chooser struct {
	Rule     Rule
	Seed     uint64
	Wait     func(port uint32) uint64 // ns until what waits at a port has left; of DRILL
	Pairs    map[uint32]uint32        // turns of DRB
	Flowlets map[uint32]Flowlet
	Begun    uint64 // flowlets
	Evicted  uint64 // of these, those that took over a place of one that had not ended
}

// Choose returns the hash of a packet to a set's destination. now is in ns of the monotonic
// clock.
func (c *Chooser) Choose(s *Set, e *Engine, p Packet, now uint64) (hash uint32) {
	switch c.Rule.Kind {
	case RB:
		return s.Steps[e.below(s.N)].Hash
	case RRB:
		step := e.Turn % s.N
		e.Turn++
		return s.Steps[step].Hash
	case DRB:
		pair := c.pair(p)
		place := uint32(pair) % Pairs
		step := (uint32(pair>>32) + c.Pairs[place]) % s.N
		c.Pairs[place]++
		return s.Steps[step].Hash
	case LetFlow:
		return c.flowlet(e, p, now)
	}
	return s.Steps[c.least(s, e, c.Group(s, p))].Hash
}

// Group is any step of the group that DRILL assigns a packet's flow to (DRILL §3.4.2). A
// flow's hash falls on one of all steps, so a group gets what its hops weigh together. Each
// group has an Engine of its own, as far as Step.Group tells groups apart.
func (c *Chooser) Group(s *Set, p Packet) Step {
	if s.Groups < 2 {
		return s.Steps[0]
	}
	_, flow := c.Place(p)
	hi, _ := bits.Mul32(flow, s.N)
	return s.Steps[hi]
}

func (c *Chooser) pair(p Packet) uint64 {
	if !p.Src6.IsValid() {
		return mix(c.Seed ^ (uint64(p.Src)<<32 | uint64(p.Dst)))
	}
	src, dst := p.Src6.As16(), p.Dst6.As16()
	hash := c.Seed
	for _, half := range [][]byte{src[:8], src[8:], dst[:8], dst[8:]} {
		hash = mix(hash ^ binary.BigEndian.Uint64(half))
	}
	return hash
}

// flowlet is LetFlow's choice. The kernel makes a hop of the hash, by weight.
func (c *Chooser) flowlet(e *Engine, p Packet, now uint64) uint32 {
	place, who := c.Place(p)
	f := c.Flowlets[place]
	lives := f.Last != 0 && now-f.Last <= uint64(c.Rule.Gap)
	if f.Flow != who || !lives {
		c.Begun++
		if lives {
			c.Evicted++
		}
		f = Flowlet{Flow: who, Hash: e.random()}
	}
	f.Last = now
	c.Flowlets[place] = f
	return f.Hash
}

// Place is where a packet's flow has its flowlet, and what it is called there.
func (c *Chooser) Place(p Packet) (place, flow uint32) {
	hash := mix(c.pair(p) ^ (uint64(p.Protocol)<<32 | uint64(p.Ports)))
	return uint32(hash) % Flowlets, uint32(hash >> 32)
}

// least is DRILL's choice in a group: the step whose port is free first, of random ones and
// those that were the best at the latest choice (DRILL §3.2). Among equals a random one comes
// first.
func (c *Chooser) least(s *Set, e *Engine, group Step) (step uint32) {
	first, count := uint32(group.First), uint32(group.Count)
	keep := max(1, c.Rule.Memory)
	var l least
	for range c.Rule.Samples {
		l.add(first+e.below(count), s, c.Wait, keep)
	}
	for _, step := range e.Least[:e.Remembered] {
		if step >= first && step < first+count {
			l.add(step, s, c.Wait, keep)
		}
	}
	e.Remembered = min(uint32(l.n), uint32(c.Rule.Memory))
	copy(e.Least[:], l.step[:e.Remembered])
	return l.step[0]
}

// least is the best of the steps added, the best first; among equals, the one added first.
type least struct {
	n    int
	step [MaxMemory]uint32
	wait [MaxMemory]uint64
}

func (l *least) add(step uint32, s *Set, wait func(uint32) uint64, keep int) {
	for k := range l.n {
		if l.step[k] == step {
			return
		}
	}
	w := wait(s.Steps[step].Port)
	at := l.n
	for at > 0 && w < l.wait[at-1] {
		at--
	}
	if at == keep {
		return
	}
	l.n = min(l.n+1, keep)
	copy(l.step[at+1:l.n], l.step[at:])
	copy(l.wait[at+1:l.n], l.wait[at:])
	l.step[at], l.wait[at] = step, w
}

// random is xorshift64* (Vigna 2016).
func (e *Engine) random() uint32 {
	x := e.Random
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	e.Random = x
	return uint32(x * 0x2545f4914f6cdd1d >> 32)
}

// below is a random number below n.
func (e *Engine) below(n uint32) uint32 {
	hi, _ := bits.Mul32(e.random(), n)
	return hi
}

// mix spreads every bit over all (MurmurHash3's last step).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
