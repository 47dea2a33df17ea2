package switchd

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/slowtest"
)

const qcnConfig = `topology: fat-tree:k=2
meter: {enabled: true, rate_mbit: 0.1, qcn: {target: 1, min_p: 1, max_p: 1}}
`

// flood sends segments of TCP from a host until the test ends, whose switch samples them.
func (l *testLab) flood(from, to string) {
	l.t.Helper()
	var c net.PacketConn
	err := l.Do(l.id(from), func() (err error) {
		c, err = net.ListenPacket("ip4:tcp", find(l.t, l.top, from).Addr.String())
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	ended := make(chan struct{})
	l.t.Cleanup(func() { c.Close(); <-ended })
	segment := make([]byte, 500)
	segment[12] = 5 << 4 // 20 bytes of header
	go func() {
		defer close(ended)
		for range time.Tick(2 * time.Millisecond) {
			if _, err := c.WriteTo(segment, &net.IPAddr{IP: find(l.t, l.top, to).Addr.AsSlice()}); err != nil && strings.Contains(err.Error(), "closed") {
				return
			}
		}
	}()
}

// The file is read again while senders are told, and the new keys sign. With -race nothing
// that the teller reads may be written meanwhile.
func TestRun_reloadsWhileItTells(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, "q", "fat-tree:k=2", "e0.0", "a0.1", "h0.0.2")
	keys := func(ids ...int) string {
		text := "keys:\n"
		for _, id := range ids {
			text += fmt.Sprintf("- {id: %d, key: c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M=}\n", id)
		}
		return text
	}
	p := l.child("e0.0", qcnConfig+keys(1))
	l.within("it runs", func() bool { return p.status().Feedback != nil })
	l.flood("h0.0.2", "h1.0.2")
	handled := func() uint64 { s := p.status().Feedback; return s.Told + s.Bounded }
	for _, changed := range []string{keys(2), keys(2, 3), keys(1) + "accept_unsigned: true\n"} {
		before := handled()
		l.within("senders are told", func() bool { return handled() > before+20 })
		reloads := strings.Count(p.log.String(), "reloaded: ")
		p.write(qcnConfig + changed)
		p.cmd.Process.Signal(syscall.SIGHUP)
		l.within("reloaded", func() bool { return strings.Count(p.log.String(), "reloaded: ") > reloads })
	}
	before := handled()
	l.within("senders are told still", func() bool { return handled() > before+20 })
	if s := p.status().Feedback; s.Told == 0 || s.Foreign != 0 {
		t.Errorf("%+v", s)
	}
}
