// Package topoupdate lets switches tell every host which links are down, within
// milliseconds of detection: DRB's topology update (§4.3) with the thesis's liveness of
// neighbours (§3.1.8).
//
// An Agent on every switch watches its links. It floods one entry, the set of its own
// ports that are down, and passes on others' entries by the rules of forwards. A Listener
// on every host receives the messages of its edge switch. Both keep the newest entry of
// every switch and derive a topology.Topology from them: a link is down if either of its
// ends says so. Both are state machines: they take the time, and messages as bytes, and
// own no socket, timer or goroutine. Packages wire and listen drive them.
//
// # Messages
//
// A message is one UDP datagram of at most MaxMessage bytes from neighbour to neighbour.
// All numbers are big-endian.
//
//	0  magic 0x5755    2  version 1     3  type: 1 hello, 2 update
//	4  key ID, 0: no MAC                5  0
//	6  number of entries (2)            8  fingerprint of the fabric (8)
//	16 sender's node (4)                20 sender's port (2)     22 0 (2)
//	24 sender's session (8)             32 counter (8)
//	40 receiver's session, as heard; 0: none, and to hosts (8)
//	48 hello: interval in µs (4), multiplier (1), flags (1): 1 the sender holds the
//	   link to be dead, 2 it leaves; 0 (2)
//	48 update: entries, each: originator (4), incarnation (8), sequence (4), age in
//	   ms (4), length of the bitmap (2), bitmap of the originator's dead ports, port
//	   i in bit i%8 of byte i/8, without zeros at the end
//	   at the end: HMAC-SHA-256 (32) of all that precedes it
//
// The fields marked 0 are sent as 0 and ignored, except in a hello. Receivers must drop
// messages that came with a TTL below 255.
//
// # Neighbours
//
// Only switches exchange hellos. A link is dead when nothing was heard for multiplier ×
// interval, or for longer where that was a mistake before (see patience). It is dead at once when its carrier goes or the neighbour says that it hears
// nothing. So a link that is deaf in one direction is down at both ends. A link to a
// switch that has never sent a message is judged by its carrier (unless
// AgentConfig.Require), so that agents can be introduced switch by switch. A new
// adjacency is sent the whole database. See adjacency for how replays are kept out, and
// Listener for what they can do to hosts.
//
// # Reliability
//
// Nothing is acknowledged, since hosts may not send. A change is sent at once, again
// after one Hello, after two more, and so on up to every Repeat, while the entry reports
// something down and for a Refresh afterwards. Every entry is renewed each Refresh, and
// counts for MaxAge. A host that starts late knows within Repeat what is down, even if
// its carrier has not changed. Silence about a switch says nothing. There is no digest: a
// host that found a difference could ask nobody, and would still have to wait for the
// next message.
//
// # Bounds
//
// An agent keeps a record for each switch and, for each port, a bit for each switch that
// waits to be sent. It keeps no more, whatever arrives. A port accepts as many new
// entries a second as the fabric has switches, and sends one message per Pace.
//
// # Why it is so
//
// Every finding, of hosts and of switches, becomes a topology.Topology with links down.
// So there is one way to take a path out of use. If no path to a destination is left, all
// are tried: news may be old, and links that flapped are held back.
//
// DRB's three rules (§4.3) are one function, forwards. Servers only listen. An edge
// switch reports its own failures only to its servers. News from above goes down only.
//
// Hellos between switches work as BFD's: each side numbers its attempts and echoes the
// other's number. That proves both directions and makes recordings worthless. Agents also
// read the kernel's count of lost carriers, since the kernel's message waits for the lock
// of all network configuration. A link that comes back is reported after a delay that
// grows if it flaps; failures are never delayed. A switch that was itself late does not
// blame its neighbours.
//
// A message is checked in this order, the cheapest first: length, version, fabric,
// expected neighbour, replay window, MAC, a budget for each port. Entries that wait to be
// sent are a set of switches, not a list of messages.
//
// Updates without keys are accepted only in frames to the group, with TTL 255, from the
// next switch's address, and only if they leave half of the paths to every rack.
package topoupdate
