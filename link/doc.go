// Package link moves packets in batches between weft and a network: a TUN interface of
// the kernel, a packet socket on an uplink, or a queue in memory.
//
// Every device has the method set that the consumer, package stack, declares:
//
//	Read(bufs [][]byte, sizes []int, offset int) (n int, err error)
//	Write(bufs [][]byte, offset int) (n int, err error)
//	MTU() int
//	Close() error
//
// Buffers belong to the caller; a device keeps no reference once a call has returned.
// offset is headroom: packets start there, and a device may use the bytes before it. Read
// blocks until there is a packet, and returns all packets that are ready and fit; after
// Close it returns net.ErrClosed. Write returns how many packets the device took. It
// never blocks, and drops packets that do not fit. MTU is the longest packet that may be
// written, in bytes. Read and Write may be called concurrently with each other and with
// Close.
//
// TUN, its queues, Packet and Duplex carry super-segments, too: many segments of TCP, or
// datagrams of UDP, under one header, which the kernel or its network card cuts (GSO) or
// has merged (GRO).
//
//	MaxSuper() int
//	ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error)
//	WriteSuper(bufs [][]byte, offset int) (n int, err error)
//	WriteParts(parts [][]byte) error
//
// An encoded VnetHeader precedes each packet, directly before offset. When it was read
// from the device, it has passed Check; sizes do not count it. A packet whose header
// fails Check is dropped and counted. offset is at least SuperHeadroom. WriteParts takes
// one packet in pieces. The first piece begins with the VnetHeader and holds at least the
// IP and TCP headers after it. WriteParts returns nil for a packet that is dropped,
// unless the device knows that its queue was full.
// Neither method changes the caller's bytes, except that it may complete a checksum in
// place.
//
// MaxSuper is the longest super-segment that may be written, in bytes with its IP header.
// 0 means none. It becomes 0 with the first super-segment that the kernel refuses, at any
// time. That one is lost, and later ones must be sent packet by packet. WriteSuper still
// takes packets, with checksums to be completed, and ReadSuper still returns
// super-segments.
//
// Offloads says what a device got from the kernel, and why not more. Drops counts lost
// packets.
package link
