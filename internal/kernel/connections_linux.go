package kernel

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Connections returns the kernel's TCP connections with other hosts, of the calling thread's
// network namespace. Host and Rack are the caller's to fill in.
func Connections() ([]Connection, error) {
	var all []Connection
	for _, family := range [...]uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, err := netlink.SocketDiagTCPInfo(family)
		if err != nil {
			return nil, err
		}
		for _, s := range sockets {
			if s.InetDiagMsg == nil || s.TCPInfo == nil || s.TCPInfo.State != netlink.TCP_ESTABLISHED {
				continue
			}
			local, ok := netip.AddrFromSlice(s.InetDiagMsg.ID.Source)
			remote, ok2 := netip.AddrFromSlice(s.InetDiagMsg.ID.Destination)
			if remote = remote.Unmap(); !ok || !ok2 || remote.IsLoopback() {
				continue
			}
			i := s.TCPInfo
			all = append(all, Connection{
				Local:  netip.AddrPortFrom(local.Unmap(), s.InetDiagMsg.ID.SourcePort),
				Remote: netip.AddrPortFrom(remote, s.InetDiagMsg.ID.DestinationPort),
				Sent:   i.Bytes_acked, Received: i.Bytes_received, Resent: i.Total_retrans, Needless: i.Dsack_dups,
				Segments: i.Data_segs_out, OutOf: i.Rcv_ooopack, RTT: float64(i.Rtt) / 1000, LeastRTT: float64(i.Min_rtt) / 1000,
				Delivered: float64(i.Delivery_rate) * 8 / 1e6, Timeouts: i.Retransmits,
			})
		}
	}
	return all, nil
}
