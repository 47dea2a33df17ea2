package hostprog

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/encap"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// Somebody lets the uplink have super-segments of more than 64 KB, which no outer header can
// have. They leave as they are and arrive, with and without the number of flowcells; when
// Repair has forbidden them, a connection is carried.
func TestSpray6_bigTCP(t *testing.T) {
	for _, policy := range []string{"drb", "presto"} {
		t.Run(policy, func(t *testing.T) {
			s := newSix(t, policy, func(c *SprayConfig) {
				c.Carrier = encap.CarrierSRv6 // which Linux takes off without a module
				if policy == "presto" {
					c.Cut = c.Addresses
				}
			})
			s.endsTunnels(t)
			if err := s.bigger(t, 200_000); err != nil {
				t.Skipf("BIG TCP: %v", err)
			}
			s.transfer(t, 20_000_000)
			before, err := s.spray.Stats()
			if err != nil || before.Malformed == 0 {
				t.Fatalf("no packet was too long for a header: %+v, %v", before, err)
			}
			var mended []string
			s.do(t, func() (err error) {
				mended, err = s.spray.Repair()
				return err
			})
			if len(mended) != 1 || !strings.Contains(mended[0], "gso_max_size") {
				t.Errorf("mended %q", mended)
			}
			s.transfer(t, 20_000_000)
			after, err := s.spray.Stats()
			if err != nil || after.Malformed != before.Malformed || after.Encapsulated-before.Encapsulated < 20_000_000/1460 {
				t.Errorf("%+v, before %+v; %v", after, before, err)
			}
		})
	}
}

// endsTunnels makes the far end the other host and all bouncing switches, with their SIDs.
func (s *six) endsTunnels(t *testing.T) {
	t.Helper()
	kerneltest.Shell(t, s.near, fmt.Sprintf(`set -e
		ip addr add fe80::e/64 dev p0 nodad; ip addr add %v/128 dev p0 nodad
		ip -6 route add default via fe80::f dev p0 mtu 1460 src %v`, s.src, s.src))
	script := fmt.Sprintf(`set -e
		echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
		ip link set lo up; ip addr add %v/128 dev lo nodad
		ip addr add fe80::f/64 dev p1 nodad; ip -6 route add %v/128 via fe80::e dev p1
	`, s.dst, s.src)
	set := s.cfg.Topology6.Paths(0, mustRack(t, s.cfg.Topology6, s.dst))
	for _, n := range set.Live {
		sid, _ := set.SID(n, true)
		script += fmt.Sprintf("ip -6 route add %v/128 encap seg6local action End.DT6 table local dev p1\n", sid)
	}
	kerneltest.Shell(t, s.far, script)
}

// bigger has the uplink take longer super-segments.
func (s *six) bigger(t *testing.T, bytes int) error {
	t.Helper()
	return kernel.InNamespace(s.near, func() error {
		l, err := netlink.LinkByName("p0")
		if err != nil {
			return err
		}
		return netlink.LinkSetGSOMaxSize(l, bytes)
	})
}

// transfer sends bytes from the host to the other one by the kernels' TCP, and compares them.
func (s *six) transfer(t *testing.T, n int) {
	t.Helper()
	var l net.Listener
	err := kernel.InNamespace(s.far, func() (err error) {
		l, err = net.ListenTCP("tcp6", net.TCPAddrFromAddrPort(netip.AddrPortFrom(s.dst, 0)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sent := bytes.Repeat([]byte("0123456789abcdef!"), n/17+1)[:n]
	arrived := make(chan error, 1)
	go func() { arrived <- receiveAll(l, sent) }()
	s.do(t, func() error {
		conn, err := net.DialTCP("tcp6", nil, l.Addr().(*net.TCPAddr))
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write(sent)
		return errors.Join(err, <-arrived)
	})
}
