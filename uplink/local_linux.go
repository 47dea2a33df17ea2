package uplink

import (
	"net"
	"net/netip"

	"weft/link"
)

// localBatch is how many packets of this machine's programs are led round at
// once.
const localBatch = 4

// leadRound sends packets of this machine's programs to the address out to the switch.
// The kernel routes them into the TUN, since the address is not its own. They come back
// from the switch as all packets do, so the Host has one device to read. Packets from
// other machines are dropped: the kernel should not have got them from the switch, and
// they would go round again.
func (d *Device) leadRound(socket *link.Packet, own map[netip.Addr]bool) {
	bufs, sizes := make([][]byte, localBatch), make([]int, localBatch)
	for i := range bufs {
		bufs[i] = make([]byte, link.SuperHeadroom+link.MaxSuperLen)
	}
	views := make([][]byte, 0, localBatch)
	for {
		n, err := d.tun.ReadSuper(bufs, sizes, link.SuperHeadroom)
		if err != nil {
			return // closed; should it be anything else the Host sees it when it writes
		}
		views = views[:0]
		for i := range n {
			if b := bufs[i][:link.SuperHeadroom+sizes[i]]; own[source(b[link.SuperHeadroom:])] {
				views = append(views, b)
			}
		}
		if len(views) == 0 {
			continue
		}
		// What is not taken is lost, as it would be in a queue.
		sent, _ := socket.WriteSuper(views, link.SuperHeadroom)
		d.local.Add(uint64(sent))
	}
}

// source returns an IP packet's, the zero Addr of what is none.
func source(b []byte) netip.Addr {
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		return netip.AddrFrom4([4]byte(b[12:16]))
	case len(b) >= 40 && b[0]>>4 == 6:
		return netip.AddrFrom16([16]byte(b[8:24]))
	}
	return netip.Addr{}
}

// ownAddresses are the kernel's, of the calling thread's network namespace.
func ownAddresses() (map[netip.Addr]bool, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	own := make(map[netip.Addr]bool)
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().IsGlobalUnicast() {
			own[prefix.Addr().Unmap()] = true
		}
	}
	return own, nil
}
