// Package spray chooses paths in the simulator. Hosts uses the selectors of weft's real
// hosts. Switch models switches that weft does not have. With Numbers hosts cut flowcells
// for these switches as their own policies do.
//
// It is pure: no I/O, no clock, no goroutine. The simulator owns all of it and calls it
// from one goroutine; random numbers come from seeds. Nothing allocates for a packet.
package spray
