package daemon

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// rollTunnel rolls the key of the tunnel over: first both ends also accept the next
// one, then both send with it, and at last they forget the former.
func (s *soak) rollTunnel() {
	s.Helper()
	refused := func() (n int) {
		for _, c := range s.tunnel {
			f := c.status()
			for _, why := range []string{"forged", "replayed", "malformed"} {
				v, err := strconv.Atoi(f["dataplane.tunnel."+why])
				if err != nil {
					s.Fatalf("%s: status has no dataplane.tunnel.%s", c.node, why)
				}
				n += v
			}
		}
		return n
	}
	had := refused()
	of := func(field string, n int) string {
		return fmt.Sprintf("      %s: %s\n      %s_id: %d\n", field, secret(1000+n), field, n%256)
	}
	old := s.tunnelKeys
	s.tunnelKeys++
	for _, keys := range []string{
		of("key", old) + of("accept_key", old+1),
		of("key", old+1) + of("accept_key", old),
		of("key", old+1),
	} {
		s.reread(s.tunnel, func(end int) string { return s.tunnelConfig(end, keys) })
		time.Sleep(time.Second)
	}
	if now := refused(); now != had {
		s.Errorf("roll-over %d of the tunnel: %d datagrams were refused", s.tunnelKeys, now-had)
	}
}

// halfOpen sends SYNs from hosts that do not exist.
func (s *soak) halfOpen(ctx context.Context) {
	fd := -1
	s.do(soakStranger, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		return err
	})
	defer unix.Close(fd)
	random := rand.New(rand.NewPCG(1, 2))
	from := s.node(soakStranger).Addr.As4()
	targets := []string{s.node(s.hosts[0]).Addr.String(), s.node(s.hosts[1]).Addr.String(), s.embeddedAddr()}
	for ctx.Err() == nil {
		from[3] = byte(200 + random.IntN(50))
		to := [4]byte(net.ParseIP(targets[random.IntN(len(targets))]).To4())
		if unix.Sendto(fd, syn(from, to, uint16(1024+random.IntN(60000)), 7, random.Uint32()), 0, &unix.SockaddrInet4{Addr: to}) == nil {
			s.syns.Add(1)
		}
		wait(ctx, time.Second/soakHalfOpen)
	}
}

// syn is an IPv4 packet with the beginning of a connection.
func syn(from, to [4]byte, port, toPort uint16, sequence uint32) []byte {
	b := make([]byte, 40)
	b[0], b[8], b[9] = 0x45, 64, unix.IPPROTO_TCP
	binary.BigEndian.PutUint16(b[2:], 40)
	copy(b[12:], from[:])
	copy(b[16:], to[:])
	tcp := b[20:]
	binary.BigEndian.PutUint16(tcp, port)
	binary.BigEndian.PutUint16(tcp[2:], toPort)
	binary.BigEndian.PutUint32(tcp[4:], sequence)
	tcp[12], tcp[13] = 5<<4, 2 // SYN
	binary.BigEndian.PutUint16(tcp[14:], 65535)
	sum := uint32(unix.IPPROTO_TCP + 20)
	for i := 12; i < 40; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(tcp[16:], ^uint16(sum))
	return b
}

// abandon opens connections, uses them, and forgets them without a word to the other
// end. The machine answers keepalives with a reset for a minute, and then nothing at
// all for as long as it takes the other ends to give up.
func (s *soak) abandon(ctx context.Context) {
	random := rand.New(rand.NewPCG(3, 4))
	away := &soakLoad{to: []string{s.node(s.hosts[0]).Addr.String() + ":7", s.embeddedAddr() + ":7"}, away: func() bool { return true }}
	away.dial = func(_ context.Context, to string) (c net.Conn, err error) {
		s.lab.Do(s.node(soakPlain).ID, func() error {
			c, err = dialHere(to)
			return nil
		})
		return c, err
	}
	neighbours := s.permanent(soakPlain)
	for ctx.Err() == nil {
		for began := time.Now(); time.Since(began) < time.Minute && ctx.Err() == nil; wait(ctx, 5*time.Second) {
			for i := range soakAbandoned {
				c := away.open(ctx, i)
				if c == nil {
					continue
				}
				if away.exchange(ctx, c, random, 100) {
					raw, _ := c.(*net.TCPConn).SyscallConn()
					raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_REPAIR, 1) })
					s.abandoned.Add(1)
				}
				c.Close()
			}
		}
		s.shell(soakPlain, "ip link set p0 down")
		wait(ctx, 3*time.Minute)
		s.comeUp(soakPlain, neighbours)
	}
}

// comeUp does what a machine's own network management does when its device comes up.
func (s *soak) comeUp(host, neighbours string) {
	a := s.node(host).Addr.As4()
	s.shell(host, fmt.Sprintf("ip link set p0 up\n%sip route replace default via %d.%d.%d.1 dev p0 onlink", neighbours, a[0], a[1], a[2]))
}

// loadTable says how the loads are.
func (s *soak) loadTable() string {
	all := map[string]soakCounts{}
	for from, l := range s.loads {
		all[from] = l.counted()
	}
	if v, err := s.service.vitals(); err == nil && v.Load != nil {
		all["embedded "+soakEmbedded] = *v.Load
	} else {
		s.Errorf("the embedded Host's process does not answer: %v", err)
	}
	text := fmt.Sprintf("\n%-18s %6s %8s %9s %8s %7s %5s %5s %9s %9s  %s\n", "connections from", "open", "short", "exchanges", "MB", "renewed", "lost", "stuck", "corrupted", "redialled", "slowest exchange")
	for _, from := range slices.Sorted(maps.Keys(all)) {
		c := all[from]
		text += fmt.Sprintf("%-18s %6d %8d %9d %8.1f %7d %5d %5d %9d %9d  %v, %s\n", from, c.Open, c.Short, c.Exchanges, float64(c.Bytes)/1e6, c.Renewed, c.Lost, c.Stuck, c.Corrupted, c.Redialled, c.Slowest.Round(time.Millisecond), c.SlowestIs)
		if c.Lost+c.Stuck+c.Corrupted > 0 {
			s.Errorf("load from %s: %d lost, %d stuck, %d corrupted; the first: %s", from, c.Lost, c.Stuck, c.Corrupted, c.First)
		}
	}
	return text
}

// report prints what has come of it, and fails for what has grown.
func (s *soak) report(whole time.Duration, all []*soaked, missed int) {
	s.Helper()
	var bytes int64
	for _, t := range s.transfers {
		bytes += t.bytes.Load()
	}
	text := s.loadTable()
	text += fmt.Sprintf("\n%d long transfers: %.1f MB; %d SYNs without more, %d connections abandoned\n", len(s.transfers), float64(bytes)/1e6, s.syns.Load(), s.abandoned.Load())
	text += fmt.Sprintf("%d events, of them %d kills; %d roll-overs of updates' keys, %d of the tunnel's; %d samples missed\n\n", s.events, s.kills, s.keys, s.tunnelKeys, missed)
	text += fmt.Sprintf("%-22s %-12s %9s %9s %9s %9s\n", "medians of quarters", "", "first", "second", "third", "last")
	for _, p := range all {
		table, grew := p.judge(whole)
		text += table
		for _, g := range grew {
			if whole >= soakJudged {
				s.Errorf("%s", g)
			} else {
				s.Logf("not judged in so short a time: %s", g)
			}
		}
	}
	s.Log(strings.TrimRight(text, "\n"))
}
