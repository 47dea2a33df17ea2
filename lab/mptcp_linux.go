package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/topology"
)

// The path manager's generic netlink interface, linux/mptcp_pm.h.
const (
	mptcpFamily  = "mptcp_pm"
	mptcpVersion = 1

	mptcpCmdAddAddr    = 1
	mptcpCmdFlushAddrs = 4
	mptcpCmdSetLimits  = 5

	mptcpAttrAddr       = 1
	mptcpAttrRcvAddAddr = 2
	mptcpAttrSubflows   = 3

	mptcpAddrFamily = 1
	mptcpAddr4      = 3
	mptcpAddrPort   = 5
	mptcpAddrFlags  = 6

	mptcpFlagSignal = 1
)

const mptcpFirstPort = 6001 // the kernel listens on these itself

// EnableMPTCP gives MPTCP connections between hosts of IPv4 so many subflows over one pair of
// addresses, 1 to MaxManagedSubflows. Up to MaxMPTCPSubflows the kernel's path manager opens them:
// each host announces its own address with further ports. More are opened by weft in each host's
// namespace, from further ports, until Close or the next call, which make the kernel's path manager
// that of new connections again. So the subflows differ in their
// five-tuples, and ECMP spreads them. A later call changes the number for new connections. The
// error is fs.ErrNotExist if the kernel has no MPTCP.
func (l *Lab) EnableMPTCP(subflows int) error {
	if subflows < 1 || subflows > MaxManagedSubflows {
		return fmt.Errorf("MPTCP with %d subflows: must be from 1 to %d", subflows, MaxManagedSubflows)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.closeSubflowers(); err != nil {
		return kernel.Explain(err)
	}
	for n := range l.Config.nodes() {
		if n.Layer != topology.LayerHost || !n.Addr.Is4() {
			continue
		}
		err := l.Do(n.ID, func() error {
			if subflows > MaxMPTCPSubflows {
				s, err := startSubflower(subflows - 1)
				if err == nil {
					l.subflowers[n.ID] = s
				}
				return err
			}
			// A program that was killed leaves hosts without a manager.
			if err := setMPTCPManager(false); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return enableMPTCP(n.Addr, subflows-1, l.announced)
		})
		if err != nil {
			return kernel.Explain(errors.Join(fmt.Errorf("MPTCP of %s: %w", n.Name, err), l.closeSubflowers()))
		}
	}
	l.announced = l.announced || subflows <= MaxMPTCPSubflows
	return nil
}

// closeSubflowers ends weft's path managers, with l.mu held.
func (l *Lab) closeSubflowers() (err error) {
	for id, s := range l.subflowers {
		s.close()
		e := l.Do(id, func() error { return setMPTCPManager(false) })
		if e != nil && !errors.Is(e, fs.ErrNotExist) { // the host is gone
			err = errors.Join(err, fmt.Errorf("MPTCP of %s: %w", l.Config.plant().Node(id).Name, e))
		}
	}
	clear(l.subflowers)
	return err
}

// Subflows is what weft's path managers have done since EnableMPTCP; nothing where the kernel's
// are used.
func (l *Lab) Subflows() (sum SubflowCounts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.subflowers {
		sum = sum.Add(s.read())
	}
	return sum
}

// enableMPTCP does it in the current network namespace, with extra subflows besides the first.
// All ports stay announced: connections that end hold theirs for a while, so that the kernel
// could not listen on them anew.
func enableMPTCP(own netip.Addr, extra int, announced bool) error {
	family, err := kernel.GenlFamily(mptcpFamily)
	if err != nil {
		return err
	}
	err = mptcpCall(family, mptcpCmdSetLimits,
		nl.NewRtAttr(mptcpAttrRcvAddAddr, nl.Uint32Attr(uint32(extra))),
		nl.NewRtAttr(mptcpAttrSubflows, nl.Uint32Attr(uint32(extra))))
	if err != nil {
		return err
	}
	if announced {
		return nil
	}
	if err := mptcpCall(family, mptcpCmdFlushAddrs); err != nil {
		return err
	}
	for i := range MaxMPTCPSubflows - 1 {
		addr := nl.NewRtAttr(mptcpAttrAddr|unix.NLA_F_NESTED, nil)
		addr.AddRtAttr(mptcpAddrFamily, nl.Uint16Attr(unix.AF_INET))
		addr.AddRtAttr(mptcpAddr4, own.AsSlice())
		addr.AddRtAttr(mptcpAddrPort, nl.Uint16Attr(uint16(mptcpFirstPort+i)))
		addr.AddRtAttr(mptcpAddrFlags, nl.Uint32Attr(mptcpFlagSignal))
		if err := mptcpCall(family, mptcpCmdAddAddr, addr); err != nil {
			return err
		}
	}
	return nil
}

// disableMPTCP undoes enableMPTCP in a namespace that is to be deleted. The kernel's own
// listeners on announced ports would otherwise hold the namespace for good: seen in Linux
// 6.18, where a day of tests left 14,000 of them, and the machine slow. Where there is
// nothing to undo, as in a namespace that is half built, it fails, and nobody cares.
func disableMPTCP(namespace string) {
	kernel.InNamespace(namespace, func() error {
		family, err := kernel.GenlFamily(mptcpFamily)
		if err != nil {
			return err
		}
		return mptcpCall(family, mptcpCmdFlushAddrs)
	})
}

func mptcpCall(family uint16, command uint8, attrs ...*nl.RtAttr) error {
	_, err := kernel.GenlCall(family, kernel.GenlHeader{Command: command, Version: mptcpVersion}, attrs...)
	return err
}
