// Package source finds out what weft ui and weft top show: it reads the counters of a lab's
// namespaces (Lab, Linux only), or asks a weft host's status socket (Host).
package source
