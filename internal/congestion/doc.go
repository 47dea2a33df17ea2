// Package congestion gives a kernel without DCTCP one for its own TCP, by eBPF programs
// (Register), and says which congestion controls a kernel has (Check).
//
// It knows sockets of the kernel's TCP. It does not know for which of them the congestion
// control is used: routes say that (internal/hostsetup), or a program for its own sockets.
//
// # DCTCP
//
// The programs are those functions of Linux's tcp_dctcp.c that a congestion control may
// have as eBPF: RFC 8257's estimate of the share of marked packets, the reduction of the
// window by it, and the receiver's exact echo of marks. What they compute stands in
// bpf/alpha.h.
//
// Its name, Name, is one of the whole kernel, in all network namespaces. It lasts as long as
// any process has a Registration. Connections that use it go on with it after that.
//
// TCP negotiates ECN by itself if the route to the peer names this congestion control, at
// either end. A server by its default setting (net.ipv4.tcp_ecn=2) refuses: Linux sets ECT
// on DCTCP's SYN, and takes that for a sign of a damaged header where no route names DCTCP.
// A connection without ECN gets cubic.
package congestion

// Name is the congestion control that Register brings, as routes, sockets and ss -i have
// it.
const Name = "weft_dctcp"

// MaxName is the kernel's TCP_CA_NAME_MAX less the terminating zero, in bytes.
const MaxName = 15
