package throughput

import (
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

	"weft/lab"
)

var kernelTCP = way{
	open: func(s site) (*host, error) { return kernelHost(s.topology.Node(s.self).Addr, false), nil },
}

var kernelMPTCP = way{
	supports: func(context.Context, *bench) error {
		if _, err := os.Stat("/proc/sys/net/mptcp/enabled"); err != nil {
			return errors.New("this kernel has no MPTCP (kernel option MPTCP)")
		}
		return nil
	},
	prepare: func(b *bench) error { return b.lab.EnableMPTCP(lab.MPTCPSubflows) },
	open:    func(s site) (*host, error) { return kernelHost(s.topology.Node(s.self).Addr, true), nil },
}

// kernelHost is the TCP of the kernel in this process's namespace.
func kernelHost(address netip.Addr, multipath bool) *host {
	return &host{
		Endpoint:    kernelSockets{multipath},
		address:     address,
		retransmits: kernelRetransmits,
		close:       func() error { return nil },
	}
}

type kernelSockets struct{ multipath bool }

// DialContext fails if it does not get what it is to measure: TCP with another
// congestion control, or without its multiple paths.
func (k kernelSockets) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Control: setControl}
	d.SetMultipathTCP(k.multipath)
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if err := k.check(c.(*net.TCPConn)); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (k kernelSockets) check(c *net.TCPConn) error {
	multipath, err := c.MultipathTCP()
	if err != nil {
		return err
	}
	if multipath != k.multipath {
		return fmt.Errorf("MPTCP is %v, want %v: see ip mptcp in the namespaces", multipath, k.multipath)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var name string
	var failed error
	err = raw.Control(func(fd uintptr) {
		name, failed = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("read the congestion control: %w", err)
	}
	if name != congestionControl {
		return fmt.Errorf("congestion control is %s, want %s", name, congestionControl)
	}
	return nil
}

func (k kernelSockets) Listen(network, address string) (net.Listener, error) {
	c := net.ListenConfig{Control: setControl}
	c.SetMultipathTCP(k.multipath)
	return c.Listen(context.Background(), network, address)
}

// setControl chooses the congestion control: what hosts default to differs.
func setControl(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestionControl)
	})
	if failed != nil {
		failed = fmt.Errorf("set congestion control %s: %w", congestionControl, failed)
	}
	return errors.Join(err, failed)
}

// kernelRetransmits counts those of this process's namespace.
func kernelRetransmits() (uint64, error) {
	b, err := os.ReadFile("/proc/self/net/snmp")
	if err != nil {
		return 0, err
	}
	var names []string
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, n := range names {
			if n == "RetransSegs" && i < len(fields) {
				return strconv.ParseUint(fields[i], 10, 64)
			}
		}
	}
	return 0, errors.New("no RetransSegs in /proc/self/net/snmp")
}
