// Package scheduling is a node's side of weft scheduler, for weft host and weft switch: each
// period it reads what the node's program has counted, reports the elephants to the scheduler
// that leads, and pins flows to the paths that come back. Pins expire, so the node goes on by its
// own rule when the schedulers are silent. The decisions are internal/elephant's and pure.
package scheduling
