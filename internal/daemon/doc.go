// Package daemon is weft host: it puts the dataplane of package stack behind the
// kernel's sockets of a whole machine, so that programs which know nothing of
// weft send over every path.
//
// A run is: read the configuration, drop what privileges are not needed, find
// the uplink, set up rules, routes and settings (hostsetup.Plan), open the
// devices, start the dataplane, and only then lead traffic into it. The end is
// the same backwards, and no step of it loses a connection, since the
// connections are the kernel's. What a crash leaves is known to the next run,
// and to weft host --cleanup.
package daemon
