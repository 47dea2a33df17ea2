// Package socket sees the packets of the kernel's devices by packet sockets with a ring
// (packet(7), TPACKET_V3), which copies them at once: a socket without a ring shares the bytes
// with a packet that the kernel may change before they are read.
package socket
