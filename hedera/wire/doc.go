// Package wire is what nodes and schedulers tell each other. A node, a host or an edge
// switch, reports the elephants that begin at it. The scheduler that leads answers with
// placements: a five-tuple takes a path for some time.
//
// Messages are UDP datagrams with an HMAC of the keys that topology updates have (package
// topoupdate). All of it is soft state: a lost report is followed by the next one, a lost
// placement is repeated until its flow ends, and a node that hears nothing lets its
// placements expire and goes on by its own rule.
//
// # Sessions
//
// A node begins a session with each server by a hello with a random number. The server
// answers with a random number of its own. All later messages carry both and a counter, so
// messages of earlier sessions are replays, also after either side has begun anew, and no
// clock takes part. A node uses its number for the first answer only: if the server has
// begun anew, the node does so, too. A server has one session in use for each node, and
// offers one number to all hellos that are of another. The session that proves that it has
// heard it replaces the one in use, and the next number is another one. So an old hello that
// somebody repeats changes nothing.
//
// # Trust
//
// All nodes have the same keys, so the MAC says only that somebody of the fabric speaks. Which
// node it is the address says from which a message comes: a server refuses what does not come
// from the address of the node that it names, and it answers there, so that nobody else can
// prove a session. Whoever has a key can speak for its own address only, unless the network
// delivers to it what is sent to another. A network address translator between node and server
// is not possible.
//
// Each answer says who leads, and since which epoch: a number that grows from one leader to
// the next. Nodes send reports to the leader of the highest epoch, and ignore placements of
// lower ones. So a leader that does not know yet that it is none does no harm.
//
// Node and Desk are the two sides of this protocol, pure: they take the time and own no
// socket. Client runs a Node; internal/schedulerd runs a Desk.
package wire
