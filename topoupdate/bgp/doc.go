// Package bgp makes a fabric's graph of the routes that a host's own switches announce to
// it. Where each switch has an AS of its own (RFC 7938) and sends all paths (add-path, RFC
// 7911), the AS paths say which switches are wired to which: 65101 65001 65102 means that
// spine 65001 leads from leaf 65101 to leaf 65102. Withdrawn routes are failed links.
//
// The package is pure: no I/O, no clock, no goroutine. Package session does the talking.
package bgp
