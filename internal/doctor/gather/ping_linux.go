package gather

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"time"
)

const (
	// pingTime is how long answers are waited for.
	pingTime = 700 * time.Millisecond
	// mostPinged bounds how many switches are pinged.
	mostPinged = 64
)

// pingBouncing sends the bouncing switches a plain ping each: what answers it, and sends no
// boomerang home, does not take outer headers off.
func (l *looker) pingBouncing(ctx context.Context) {
	f := l.f
	if f.Host.Failures == nil || !f.System.Root {
		return
	}
	to := make(map[netip.Addr]bool)
	for _, p := range f.Host.Failures.Paths {
		if p.Bounce != "" && p.Via.Is4() && len(to) < mostPinged {
			to[p.Via] = false
		}
	}
	c, err := net.ListenPacket("ip4:icmp", "0.0.0.0")
	if err != nil {
		return // what the daemon says of them is still told
	}
	defer c.Close()
	id := uint16(os.Getpid())
	for addr := range to {
		if _, err := c.WriteTo(echo(id), &net.IPAddr{IP: addr.AsSlice()}); err != nil {
			continue // no route: it does not answer either
		}
	}
	deadline := time.Now().Add(pingTime)
	if t, ok := ctx.Deadline(); ok && t.Before(deadline) {
		deadline = t
	}
	c.SetReadDeadline(deadline)
	buf := make([]byte, 1500)
	for missing := len(to); missing > 0; {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			break
		}
		ip, ok := from.(*net.IPAddr)
		if !ok || n < 8 || buf[0] != 0 || binary.BigEndian.Uint16(buf[4:]) != id {
			continue
		}
		addr, _ := netip.AddrFromSlice(ip.IP.To4())
		if answered, asked := to[addr]; asked && !answered {
			to[addr] = true
			missing--
		}
	}
	f.Answers = to
}

// echo is an ICMP echo request.
func echo(id uint16) []byte {
	b := make([]byte, 16)
	b[0] = 8
	binary.BigEndian.PutUint16(b[4:], id)
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum+sum>>16))
	return b
}
