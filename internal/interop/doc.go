// Package interop tests weft host and weft switch with the programs that people
// run: in a lab of network namespaces, by the real binary, with the kernel's own
// connections, and while switches and links fail. It
// has tests only. They need Linux, root and the programs, and say what is
// missing. Most of them need WEFT_TESTS=all; WEFT_TESTS=long makes them as long as a
// release needs them, some ten minutes: go test -timeout 30m.
package interop
