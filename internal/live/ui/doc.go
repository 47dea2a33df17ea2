// Package ui serves the live picture of a fabric to browsers: a page, and what it draws as
// server-sent events. weft ui, weft lab ui and weft demo --live run it.
//
// A Server asks its live.Source at regular times. It keeps the frames of ten minutes, and tells
// each client what has changed (live.Delta), encoded once for all. A client that does not keep up
// is dropped; its browser comes back by itself and begins with a whole frame.
//
// # Who may do what
//
// The page listens on a loopback address or a Unix socket. Elsewhere it listens only if it is told
// to (Options.Remote). Whoever reaches it may look. To make something fail takes the key, which is
// in the address that is printed, behind the #, where browsers keep it to themselves.
//
// Other web pages in the same browser can do nothing: the Host header must be an address or
// localhost, so a name that was bound to a loopback address is refused; requests that the browser
// says come from elsewhere are refused; and the key goes in a header, which such requests cannot
// have. The page loads nothing from elsewhere and runs no script but its own
// (Content-Security-Policy). All that it shows is set as text, never as HTML.
package ui
