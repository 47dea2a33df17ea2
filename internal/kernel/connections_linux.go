package kernel

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// connectionStates are the states of connections that Connections lists.
var connectionStates = map[uint8]string{
	netlink.TCP_ESTABLISHED: StateEstablished, netlink.TCP_SYN_SENT: "syn-sent", netlink.TCP_FIN_WAIT1: "fin-wait-1",
	netlink.TCP_CLOSE_WAIT: "close-wait", netlink.TCP_LAST_ACK: "last-ack", netlink.TCP_CLOSING: "closing",
}

// Connections returns the kernel's TCP connections with other hosts, of the calling thread's
// network namespace: the established ones, and others that wait for an answer to what they have
// sent, be it a SYN or a FIN.
func Connections() ([]Connection, error) {
	var all []Connection
	for _, family := range [...]uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, err := Dumped(func() ([]*netlink.InetDiagTCPInfoResp, error) { return netlink.SocketDiagTCPInfo(family) })
		if err != nil {
			return nil, err
		}
		for _, s := range sockets {
			if c, ok := connectionOf(s); ok {
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// connectionOf returns what the kernel says of a socket, if it is a connection to be listed.
func connectionOf(s *netlink.InetDiagTCPInfoResp) (c Connection, ok bool) {
	if s.InetDiagMsg == nil || s.TCPInfo == nil {
		return c, false
	}
	m, i := s.InetDiagMsg, s.TCPInfo
	state := connectionStates[m.State]
	if state == "" || state != StateEstablished && m.WQueue == 0 {
		return c, false
	}
	local, ok := netip.AddrFromSlice(m.ID.Source)
	remote, ok2 := netip.AddrFromSlice(m.ID.Destination)
	if remote = remote.Unmap(); !ok || !ok2 || remote.IsLoopback() {
		return c, false
	}
	return Connection{
		Local:  netip.AddrPortFrom(local.Unmap(), m.ID.SourcePort),
		Remote: netip.AddrPortFrom(remote, m.ID.DestinationPort),
		State:  state,
		Sent:   i.Bytes_acked, Received: i.Bytes_received, Waiting: m.WQueue, Resent: i.Total_retrans, Needless: i.Dsack_dups,
		Segments: i.Data_segs_out, OutOf: i.Rcv_ooopack, RTT: float64(i.Rtt) / 1000, LeastRTT: float64(i.Min_rtt) / 1000,
		Delivered: float64(i.Delivery_rate) * 8 / 1e6, Timeouts: i.Retransmits,
	}, true
}
