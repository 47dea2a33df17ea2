package switchd

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/checksum"
	"weft/topology"
	"weft/topoupdate"
)

// tunnelled is a UDP datagram to the group from an address, as it would come from a
// neighbour: with a full TTL.
func tunnelled(from topology.Node, message []byte) []byte {
	b := make([]byte, 28, 28+len(message))
	b[0], b[8], b[9] = 0x45, 255, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(b[2:], uint16(28+len(message)))
	copy(b[12:], from.Addr.AsSlice())
	group := topoupdate.Group.As4()
	copy(b[16:], group[:])
	binary.BigEndian.PutUint16(b[10:], ^checksum.Fold(checksum.Sum(b[:20], 0)))
	binary.BigEndian.PutUint16(b[20:], topoupdate.Port)
	binary.BigEndian.PutUint16(b[22:], topoupdate.Port)
	binary.BigEndian.PutUint16(b[24:], uint16(8+len(message))) // no checksum
	return append(b, message...)
}

// Any host can have any switch take a packet out of IP-in-IP, which then seems to
// have come from the neighbour, with a full TTL. A hello whose session is higher
// than all of the neighbour's would end the adjacency, and with it the link.
func TestAgents_whatCameByATunnelIsNotFromANeighbour(t *testing.T) {
	l := upLab(t, "u", "fat-tree:k=4", pod...)
	c := fast
	c.Keys = topoupdate.Keys{}
	l.start(c)
	l.adjacent()
	agg, link := l.agents[l.id("a0.2")], l.link("e0.0-a0.2")
	forged, err := topoupdate.NewAgent(topoupdate.AgentConfig{Topology: l.top, Self: l.id("e0.0"), Boot: math.MaxUint64 / 2})
	if err != nil {
		t.Fatal(err)
	}
	host := find(t, l.top, "h0.0.2")
	to := find(t, l.top, "a0.2").Addr.As4()
	now, sent := time.Duration(0), 0
	downs := agg.Status().Flooding.Originated
	drops := agg.Status().Neighbours[0].Drops
	send := func() {
		err := l.Do(host.ID, func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_IPIP)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			forged.Tick(now)
			forged.Send(func(port int, message []byte) {
				if port == 2 && err == nil { // leads to a0.2
					err = unix.Sendto(fd, tunnelled(host, message), 0, &unix.SockaddrInet4{Addr: to})
					sent++
				}
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		now += fast.Hello + time.Second
		send()
		time.Sleep(2 * time.Millisecond)
	}
	l.within("the tunnelled ones are dropped, or believed", func() bool {
		s := agg.Status()
		return s.Neighbours[0].Drops >= drops+uint64(sent) || !agg.Topology().Live(link)
	})
	time.Sleep(4 * fast.Hello) // in which the neighbour would be missed
	s := agg.Status()
	t.Logf("%d tunnelled hellos: %d dropped, link up %v, own entries %d (before: %d), rejected %v", sent, s.Neighbours[0].Drops-drops, agg.Topology().Live(link), s.Flooding.Originated, downs, s.Rejected)
	if !agg.Topology().Live(link) || s.Neighbours[0].State != "up" || s.Rejected["replay"] > 0 {
		t.Errorf("hellos by a tunnel took the link down: %+v, rejected %v", s.Neighbours[0], s.Rejected)
	}
}
