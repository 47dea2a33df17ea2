// Package link moves packets in batches between weft and a network: a TUN
// interface of the kernel, or a queue in memory.
//
// Every device has the method set that the consumer, package stack, declares:
//
//	Read(bufs [][]byte, sizes []int, offset int) (n int, err error)
//	Write(bufs [][]byte, offset int) (n int, err error)
//	MTU() int
//	Close() error
//
// Buffers belong to the caller; a device keeps no reference once a call has
// returned. offset is headroom: packets start there, and a device may use the
// bytes before it. Read blocks until there is a packet and takes as many as
// are at hand; after Close it returns net.ErrClosed. Write returns how many
// packets the device took; it never blocks, and drops what does not fit. MTU
// is the longest packet that may be written, in bytes. Read and Write may be
// called concurrently with each other and with Close.
package link
