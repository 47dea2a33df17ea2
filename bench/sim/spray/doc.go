// Package spray chooses paths in the simulator. Hosts does it with the selectors of weft's
// real hosts. Switch models switches that weft does not have. With Numbers hosts cut
// flowcells for these as their own policies do.
//
// It is pure: no I/O, no clock, no goroutine. The simulator owns all of it and calls
// it from one goroutine; what is random comes from seeds. Nothing allocates per
// packet.
package spray
