package daemon

import "weft/resequencer"

// leastMemory is what a daemon needs of memory, in bytes, with what the kernel keeps for it.
const leastMemory = 32 << 20

// frameBytes is the memory of a packet that is held, at least.
const frameBytes = 2048

// within lowers the bounds of a reorder buffer, so that what it holds takes at most a
// quarter of memory, in bytes; 0 means no limit. A packet takes frameBytes or twice its
// size. The buffer delivers early what exceeds a bound, which is better than a daemon that
// is killed.
func within(c resequencer.Config, memory int64) resequencer.Config {
	if memory <= 0 {
		return c
	}
	bytes, packets := int(memory/8/2), int(memory/8/frameBytes)
	for _, b := range []*int{&c.FlowBytes, &c.PeerBytes, &c.TotalBytes} {
		*b = max(min(*b, bytes), 1)
	}
	for _, p := range []*int{&c.FlowPackets, &c.PeerPackets, &c.TotalPackets} {
		*p = max(min(*p, packets), 1)
	}
	return c
}
