package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// pair makes two namespaces with a cable between them, 10.99.0.1 and 10.99.0.2.
func pair(t *testing.T) (a, b string) {
	a, b = kerneltest.Namespace(t, "a"), kerneltest.Namespace(t, "b")
	kerneltest.EthernetPair(t, a, "p0", "p1")
	kerneltest.Shell(t, a, "ip link set p1 netns "+b+" && ip addr add 10.99.0.1/24 dev p0 && ip link set p0 up && ip link set lo up")
	kerneltest.Shell(t, b, "ip addr add 10.99.0.2/24 dev p1 && ip link set p1 up && ip link set lo up")
	return a, b
}

// A connection has as many subflows as weft's path managers are told, which are more than the
// kernel's opens. It carries bytes.
func TestSubflower_opensSubflows(t *testing.T) {
	kerneltest.NeedRoot(t)
	if _, err := os.Stat(mptcpManager); errors.Is(err, os.ErrNotExist) {
		t.Skip("this kernel has no MPTCP, or no path managers in userspace")
	}
	a, b := pair(t)
	in := func(ns string, f func() error) {
		t.Helper()
		if err := kernel.InNamespace(ns, f); err != nil {
			t.Fatal(err)
		}
	}
	joined := func() (n int) {
		in(b, func() (err error) { n, err = netstat("MPTcpExt:", "MPJoinAckRx"); return err })
		return n
	}
	for _, extra := range []int{15, MaxManagedSubflows - 1} {
		var managers []*subflower
		for _, ns := range []string{a, b} {
			in(ns, func() error {
				s, err := startSubflower(extra)
				if err == nil {
					managers = append(managers, s)
				}
				return err
			})
		}
		before := joined()
		var l net.Listener
		in(b, func() (err error) {
			var c net.ListenConfig
			c.SetMultipathTCP(true)
			l, err = c.Listen(context.Background(), "tcp", "10.99.0.2:5002")
			return err
		})
		echoed := make(chan struct{})
		go func() {
			defer close(echoed)
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			io.Copy(c, c)
		}()
		var c net.Conn
		in(a, func() (err error) {
			var d net.Dialer
			d.SetMultipathTCP(true)
			c, err = d.Dial("tcp", "10.99.0.2:5002")
			return err
		})
		echo := func(n uint64) {
			t.Helper()
			var b [8]byte
			if _, err := c.Write(binary.BigEndian.AppendUint64(nil, n)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, b[:]); err != nil || binary.BigEndian.Uint64(b[:]) != n {
				t.Fatal(b, err)
			}
		}
		echo(1)
		kerneltest.Within(t, kerneltest.Patience, "the subflows", func() bool { return joined()-before >= extra })
		echo(2)
		if n := joined() - before; n != extra {
			t.Errorf("%d subflows joined, want %d", n, extra)
		}
		t.Log(kerneltest.Shell(t, a, "ss -Mn; ss -tnH | wc -l"))
		c.Close()
		<-echoed
		l.Close()
		for _, s := range managers {
			s.close()
		}
	}
}

// What is no established connection of this end's has no subflows, whatever its bytes.
func FuzzParseMPTCPEvent(f *testing.F) {
	event := func(attrs ...[]byte) []byte {
		b := []byte{mptcpEventEstablished, 1, 0, 0}
		for _, a := range attrs {
			b = append(b, a...)
		}
		return b
	}
	attr := func(kind uint16, value ...byte) []byte {
		b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
		b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
		return append(b, make([]byte, -len(b)&3)...)
	}
	token, from, to, port := attr(mptcpEventToken, 1, 2, 3, 4), attr(mptcpEventSource4, 10, 0, 0, 2), attr(mptcpEventTarget4, 10, 0, 1, 2), attr(mptcpEventTargetPort, 0x13, 0x8a)
	good := event(token, from, to, port, attr(mptcpEventServer, 0))
	if c, ok := parseMPTCPEvent(good); !ok || c.port != 5002 || c.from.String() != "10.0.0.2" || c.to.String() != "10.0.1.2" || c.token != binary.NativeEndian.Uint32([]byte{1, 2, 3, 4}) {
		f.Fatalf("%+v, %v", c, ok)
	}
	for _, bad := range [][]byte{nil, good[:3], append([]byte{1}, good[1:]...), event(token, from, to), event(from, to, port), event(token, from, to, port, attr(mptcpEventServer, 1)),
		event(token, from, to, port, attr(mptcpEventFlags, binary.NativeEndian.AppendUint16(nil, mptcpEventFlagServer)...)), event(token, attr(mptcpEventSource4, 1), to, port)} {
		if c, ok := parseMPTCPEvent(bad); ok {
			f.Fatalf("%v is %+v", bad, c)
		}
		f.Add(bad)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, ok := parseMPTCPEvent(b); ok && (c.port == 0 || !c.from.Is4() || !c.to.Is4() || b[0] != mptcpEventEstablished) {
			t.Errorf("%v is %+v", b, c)
		}
	})
}
