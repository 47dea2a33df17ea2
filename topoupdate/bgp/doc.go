// Package bgp makes a fabric's graph of the routes that a host's own switches announce to
// it. Where each switch has an AS of its own (RFC 7938) and sends all paths (add-path, RFC
// 7911), the AS paths say which switches are wired to which: 65101 65001 65102 means that
// spine 65001 leads from leaf 65101 to leaf 65102. Withdrawn routes are failed links.
//
// # Who may say what
//
// A host believes its own switches: all that it sends passes them. Another switch can lie
// about what is behind it, but not about itself, since each switch that passes a route on
// adds its own AS to the path. So a lie about an AS has the liar's AS before it in every
// path. What paths say by different switches is believed; what one switch alone says has to
// stand back where others say otherwise:
//
//   - An AS that passes on what others have has no racks. Which it is, different switches
//     decide, and then what it was before. So it is with the tier of a switch.
//   - A prefix belongs to who had it before, then to who has it by different switches, then
//     to the nearest. That decides too which address of a switch packets bounce at.
//   - A rack's prefix within another's is left out, unless that one holds prefixes of several
//     switches. Then it is an aggregate, and no rack.
//   - The rate of a link is the median of what is said by the shortest ways.
//
// A switch that withdraws or changes all that it says can take the paths that lead through
// it, and nothing else. As in BGP itself, one that claims to be wired to a rack's switch
// attracts what goes there by longer ways. What lies from the very beginning can be believed
// where one way alone leads to what it lies about.
//
// # Bounds
//
// A Table has MaxRoutes, divided equally among the neighbours. A Spec has up to 8,192
// switches, 262,144 links, and 8,192 prefixes of racks, 64 of one switch. A line of the
// guesses names what is left out. A Spec of a full Table takes some 0.1 s and 60 MB.
//
// The package is pure: no I/O, no clock, no goroutine. Package session does the talking.
package bgp
