package testbed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/link"
	"weft/stack"
	"weft/topology"
)

// namespaces is a lab of network namespaces.
type namespaces struct {
	config Config
	lab    *fabric.Lab
}

// CanUseNamespaces says why weft hosts cannot run in network namespaces here,
// nil if they can.
func CanUseNamespaces() error {
	if err := fabric.CanBuildLab(); err != nil {
		return err
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return errors.New("no /dev/net/tun: load the module (modprobe tun) or, in a container, pass the device in (--device /dev/net/tun)")
	}
	return nil
}

// InNamespaces builds a lab that lives until Close; it needs root. progress,
// if not nil, hears of the steps of building.
func InNamespaces(ctx context.Context, name string, c Config, progress func(done, total int)) (Testbed, error) {
	lab, err := fabric.Hold(ctx, fabric.LabConfig{
		Name: name, Topology: c.Topology, RateMbit: c.RateMbit, Progress: progress,
	})
	if err != nil {
		return nil, err
	}
	return &namespaces{c, lab}, nil
}

func (t *namespaces) Kind() string { return "in network namespaces" }

func (t *namespaces) Supports(r Row) error {
	if r.MPTCP {
		if _, err := os.Stat("/proc/sys/net/mptcp/enabled"); err != nil {
			return errors.New("this kernel has no MPTCP")
		}
	}
	return nil
}

func (t *namespaces) Close() error { return t.lab.Close() }

func (t *namespaces) Start(ctx context.Context, row Row) (*Session, error) {
	base, err := t.links()
	if err != nil {
		return nil, err
	}
	links := func() ([]LinkBytes, error) {
		now, err := t.links()
		for i := range now {
			now[i].Up -= base[i].Up
			now[i].Down -= base[i].Down
		}
		return now, err
	}
	if row.Kernel {
		return t.kernelSession(row, links)
	}
	hosts, err := open(t.config, row, func(n topology.Node) (dev stack.Device, err error) {
		err = t.lab.Do(n.ID, func() (err error) {
			dev, err = link.OpenTUN(link.TUNConfig{
				Name:     "weft0",
				Routes:   []netip.Prefix{netip.PrefixFrom(t.config.Topology.EmbeddedAddr(n.ID), 32)},
				Overhead: stack.Overhead,
			})
			return err
		})
		return dev, err
	})
	if err != nil {
		return nil, err
	}
	return weftSession(hosts, links, func() {}), nil
}

// links reads the counters of all links.
func (t *namespaces) links() ([]LinkBytes, error) {
	all := make([]LinkBytes, t.config.Topology.NumLinks())
	for n := range t.config.Topology.Nodes() {
		counters, err := t.lab.PortBytes(n.ID)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		for i, p := range t.config.Topology.Ports(n.ID) {
			if p.Up {
				all[p.Link].Up = counters[i].TxBytes
			} else {
				all[p.Link].Down = counters[i].TxBytes
			}
		}
	}
	return all, nil
}

// kernelHost is the TCP of a host's kernel.
type kernelHost struct {
	lab   *fabric.Lab
	id    topology.NodeID
	mptcp bool
}

func (t *namespaces) kernelSession(row Row, links func() ([]LinkBytes, error)) (*Session, error) {
	s := &Session{close: func() {}}
	for n := range t.config.Topology.Hosts() {
		s.Hosts = append(s.Hosts, Host{kernelHost{t.lab, n.ID, row.MPTCP}, n.Addr.String()})
	}
	retransmits := func() (sum int64, err error) {
		for n := range t.config.Topology.Hosts() {
			if err := t.lab.Do(n.ID, func() error {
				r, err := kernelRetransmits()
				sum += r
				return err
			}); err != nil {
				return 0, err
			}
		}
		return sum, nil
	}
	base, err := retransmits()
	if err != nil {
		return nil, err
	}
	s.counters = func() (c Counters, err error) {
		if c.Retransmits, err = retransmits(); err != nil {
			return c, err
		}
		c.Retransmits -= base
		c.Links, err = links()
		return c, err
	}
	return s, nil
}

// control chooses the congestion control: what hosts default to differs.
func control(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestionControl)
	})
	if failed != nil {
		failed = fmt.Errorf("set congestion control %s: %w", congestionControl, failed)
	}
	return errors.Join(err, failed)
}

func (h kernelHost) DialContext(ctx context.Context, network, address string) (c net.Conn, err error) {
	d := net.Dialer{Control: control}
	d.SetMultipathTCP(h.mptcp)
	err = h.lab.Do(h.id, func() (err error) {
		c, err = d.DialContext(ctx, network, address)
		return err
	})
	return c, err
}

func (h kernelHost) Listen(network, address string) (l net.Listener, err error) {
	c := net.ListenConfig{Control: control}
	c.SetMultipathTCP(h.mptcp)
	err = h.lab.Do(h.id, func() (err error) {
		l, err = c.Listen(context.Background(), network, address)
		return err
	})
	return l, err
}

// kernelRetransmits reads the calling thread's namespace.
func kernelRetransmits() (int64, error) {
	f, err := os.Open("/proc/thread-self/net/snmp")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var names []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, n := range names {
			if n == "RetransSegs" && i < len(fields) {
				return strconv.ParseInt(fields[i], 10, 64)
			}
		}
	}
	return 0, errors.New("no RetransSegs in /proc/net/snmp")
}
