package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/congestion"
	"weft/lab"
	"weft/topology"
)

// kernelHost is the TCP of a host's kernel.
type kernelHost struct {
	lab        *lab.Lab
	id         topology.NodeID
	mptcp      bool
	congestion string // congestion control
}

// startKernel makes a session of the hosts' kernels, with what sprays their
// packets where the row wants that.
func (t *namespaces) startKernel(row Row, links func() ([]LinkBytes, error)) (*Session, error) {
	if row.Policy == "" {
		return t.kernelSession(row, links)
	}
	all, err := t.startSprayers(row)
	if err != nil {
		return nil, err
	}
	s, err := t.kernelSession(row, links)
	if err != nil {
		return nil, errors.Join(err, all.close())
	}
	counters := s.counters
	s.counters = func() (Counters, error) {
		c, err := counters()
		if err == nil {
			err = all.count(&c)
		}
		return c, err
	}
	s.close = all.close
	return s, nil
}

func (t *namespaces) kernelSession(row Row, links func() ([]LinkBytes, error)) (*Session, error) {
	if row.MPTCP {
		if err := t.lab.EnableMPTCP(cmp.Or(row.Subflows, lab.MPTCPSubflows)); err != nil {
			return nil, err
		}
	}
	var hosts []DaemonHost
	for n := range t.config.Topology.Hosts() {
		hosts = append(hosts, DaemonHost{ID: n.ID, Name: n.Name, Address: n.Addr})
	}
	control := cmp.Or(row.Congestion, congestionControl)
	end, err := haveCongestion(control)
	if err != nil {
		return nil, err
	}
	s, err := kernelSession(t.lab, hosts, kernelHost{mptcp: row.MPTCP, congestion: control}, links)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	s.close = end
	if row.MPTCP {
		counters := s.counters
		s.counters = func() (Counters, error) {
			c, err := counters()
			c.Subflows = t.lab.Subflows()
			return c, err
		}
	}
	return s, nil
}

// haveCongestion says why the kernel has no such congestion control. It brings weft's, which
// stays until end.
func haveCongestion(name string) (end func() error, err error) {
	if name == congestion.Name {
		r, err := congestion.Register()
		if err != nil {
			return nil, err
		}
		return r.Close, nil
	}
	return func() error { return nil }, congestion.Check(name)
}

// kernelSession has the kernels of the hosts, all as like is; links reads the link counters.
func kernelSession(l *lab.Lab, hosts []DaemonHost, like kernelHost, links func() ([]LinkBytes, error)) (*Session, error) {
	s := &Session{close: func() error { return nil }}
	for _, h := range hosts {
		like.lab, like.id = l, h.ID
		s.Hosts = append(s.Hosts, Host{like, h.Address.String()})
	}
	read := func() (c Counters, err error) {
		for _, h := range hosts {
			if err := l.Do(h.ID, func() error { return c.addKernel() }); err != nil {
				return c, fmt.Errorf("%s: %w", h.Name, err)
			}
		}
		return c, nil
	}
	base, err := read()
	if err != nil {
		return nil, err
	}
	s.counters = func() (c Counters, err error) {
		if c, err = read(); err != nil {
			return c, err
		}
		c.Retransmits -= base.Retransmits
		c.SYNRetransmits -= base.SYNRetransmits
		c.Timeouts -= base.Timeouts
		c.Links, err = links()
		return c, err
	}
	return s, nil
}

// control chooses the congestion control: what hosts default to differs.
func (h kernelHost) control(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, h.congestion)
	})
	if failed != nil {
		failed = fmt.Errorf("set congestion control %s: %w", h.congestion, failed)
	}
	return errors.Join(err, failed)
}

func (h kernelHost) DialContext(ctx context.Context, network, address string) (c net.Conn, err error) {
	d := net.Dialer{Control: h.control}
	d.SetMultipathTCP(h.mptcp)
	err = h.lab.Do(h.id, func() (err error) {
		c, err = d.DialContext(ctx, network, address)
		return err
	})
	return c, err
}

func (h kernelHost) Listen(network, address string) (l net.Listener, err error) {
	c := net.ListenConfig{Control: h.control}
	c.SetMultipathTCP(h.mptcp)
	err = h.lab.Do(h.id, func() (err error) {
		l, err = c.Listen(context.Background(), network, address)
		return err
	})
	return l, err
}
