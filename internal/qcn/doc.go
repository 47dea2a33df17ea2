// Package qcn is quantized congestion notification (IEEE 802.1Qau; thesis §5.3.3): a switch
// tells the sender of a packet how congested its queue is, and the sender lowers the flow's
// rate.
//
//   - Congestion is the congestion point, at a port's queue. fabric's meter does the same in
//     the kernel (fabric/bpf/qcn.h), of which it is the oracle.
//   - Reaction is the reaction point, at a flow's sender.
//   - Reactions are the reaction points of a host, which believes a message only if it is
//     about what one of its connections has in flight.
//
// 802.1Qau is for Ethernet within one bridged network. Here the messages are UDP datagrams
// (encap.Feedback), so that they reach senders through routers, and what is slowed is one TCP
// connection.
//
// The package is pure: it takes the time as an argument and owns no timer. Nothing in it is
// safe for concurrent use.
package qcn
