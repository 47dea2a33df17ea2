package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"weft/encap"
	"weft/internal/exitcode"
	"weft/lab"
	"weft/stack"
	"weft/topology"
	"weft/uplink"
)

// The names of a lab host's devices.
const (
	Uplink = "p0"    // leads into the fabric
	TUN    = "weft0" // a gateway's
)

// namespaces is a lab of network namespaces.
type namespaces struct {
	config Config
	lab    *lab.Lab
	owned  bool // goes with the testbed
}

// CanUseNamespaces says why weft hosts cannot run in network namespaces here,
// nil if they can.
func CanUseNamespaces() error {
	if err := lab.CanBuild(); err != nil {
		return err
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return exitcode.AsAbsent(errors.New("no /dev/net/tun: load the module (modprobe tun) or, in a container, pass the device in (--device /dev/net/tun)"))
	}
	return nil
}

// InNamespaces builds a lab that lives until Close; it needs root. progress, if not nil,
// is called at each step of building.
func InNamespaces(ctx context.Context, name string, c Config, progress func(done, total int)) (Testbed, error) {
	lab, err := lab.Hold(ctx, lab.Config{
		Name: name, Topology: c.Topology, RateMbit: c.RateMbit, Progress: progress,
		SRv6: c.Carrier == encap.CarrierSRv6, Meter: c.Meter, Balance: c.Balance,
	})
	if err != nil {
		return nil, err
	}
	return &namespaces{c, lab, true}, nil
}

// OnLab runs hosts on a lab that is up, and leaves it up after Close. The lab keeps its
// links and rates.
func OnLab(lab *lab.Lab, c Config) Testbed { return &namespaces{c, lab, false} }

func (t *namespaces) Kind() string { return "in network namespaces" }

func (t *namespaces) Supports(r Row) error {
	if r.MPTCP {
		if _, err := os.Stat("/proc/sys/net/mptcp/enabled"); err != nil {
			return errors.New("this kernel has no MPTCP")
		}
		if _, err := os.Stat("/proc/sys/net/mptcp/pm_type"); err != nil && r.Subflows > lab.MaxMPTCPSubflows {
			return fmt.Errorf("this kernel gives a connection at most %d subflows, and no program may give it more: use Linux 5.19 or later", lab.MaxMPTCPSubflows)
		}
	}
	if r.Congestion != "" {
		end, err := haveCongestion(r.Congestion)
		if err != nil {
			return err
		}
		if err := end(); err != nil {
			return err
		}
	}
	if r.Kernel && r.Policy != "" {
		return t.trySprayer(r)
	}
	return nil
}

func (t *namespaces) Close() error {
	if !t.owned {
		return nil
	}
	return t.lab.Close()
}

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
		return t.startKernel(row, links)
	}
	hosts, err := open(t.config, row, func(n topology.Node, c stack.Config) (dev stack.Device, err error) {
		err = t.lab.Do(n.ID, func() (err error) {
			dev, err = uplink.Open(c, uplink.Options{})
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
		now := time.Now()
		for i, p := range t.config.Topology.Ports(n.ID) {
			if l := &all[p.Link]; p.Up {
				l.Up, l.UpAt = counters[i].TxBytes, now
			} else {
				l.Down, l.DownAt = counters[i].TxBytes, now
			}
		}
	}
	return all, nil
}
