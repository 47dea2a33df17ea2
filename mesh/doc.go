// Package mesh says who is in a tunnel whose peers find each other: no list, and no key
// that two of them share, is typed at any host.
//
// Each host makes a PrivateKey of its own and registers a Member in a directory: its name,
// what is behind it, where it receives, and its PublicKeys. From all Members each host
// finds out the same Peers, with a key for each pair of hosts (X25519, RFC 7748) that
// nobody else can find out. A host that keeps an Identity signs its registrations, and whoever
// has seen one knows it by that for good (View): nobody who writes the directory takes its place
// there. The directory is trusted to say who is there, and who has which name the first time, so
// each host should be allowed to write its own registration only (etcd has users and roles for
// that). Prefixes are first come, first served.
//
// # A key is replaced without loss
//
// A Member has one key in use and may have others that it accepts. A host registers its
// next key as accepted, then as the one in use, then alone. In the second step it sends by
// the next key only to peers that have seen the first step. They say so by Member.Seen. So
// a peer that cannot reach the directory for long keeps the former key, and loses nothing.
//
// The package is pure: no I/O, no clock, no goroutine. Subpackages have directories.
package mesh
