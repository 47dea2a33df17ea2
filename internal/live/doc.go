// Package live is the model of a picture that moves: a Fabric, which is what there is, and
// Frames, each of which is how it does at one moment. weft ui draws them in a browser, weft top
// in a terminal.
//
// A Source counts (Sample). A Meter makes a Frame of each Sample and the one before it. A Ring
// keeps the Frames of the last ten minutes. A Delta is what differs between two Frames, so that a
// large fabric can be followed over a slow line. Bundled joins the links of a large fabric by pod
// and tier.
//
// The package is pure: whoever samples passes the time. Nothing in it is safe for concurrent use
// but what is read only. Frames share their slices with the Ring that keeps them: they are not to
// be changed.
//
// Nodes and links are called by their positions in a Fabric. Rates are in bit/s, with three
// significant digits, so that what is shown, sent and kept is the same figure.
package live
