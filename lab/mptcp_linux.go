package lab

import (
	"errors"
	"io/fs"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
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

const (
	mptcpExtraSubflows = 7    // besides the first: 8 in all, as MPTCP is measured in DRB §5
	mptcpFirstPort     = 6001 // the kernel listens on these itself
)

// enableMPTCP allows 8 subflows over one pair of addresses to connections of the current
// network namespace. It announces the namespace's own address with further ports. So the
// subflows differ in their five-tuples, and ECMP spreads them. It returns false if the
// kernel has no MPTCP.
func enableMPTCP(own netip.Addr) (bool, error) {
	family, err := kernel.GenlFamily(mptcpFamily)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := mptcpCall(family, mptcpCmdFlushAddrs); err != nil {
		return false, err
	}
	err = mptcpCall(family, mptcpCmdSetLimits,
		nl.NewRtAttr(mptcpAttrRcvAddAddr, nl.Uint32Attr(mptcpExtraSubflows)),
		nl.NewRtAttr(mptcpAttrSubflows, nl.Uint32Attr(mptcpExtraSubflows)))
	if err != nil {
		return false, err
	}
	for i := range mptcpExtraSubflows {
		addr := nl.NewRtAttr(mptcpAttrAddr|unix.NLA_F_NESTED, nil)
		addr.AddRtAttr(mptcpAddrFamily, nl.Uint16Attr(unix.AF_INET))
		addr.AddRtAttr(mptcpAddr4, own.AsSlice())
		addr.AddRtAttr(mptcpAddrPort, nl.Uint16Attr(uint16(mptcpFirstPort+i)))
		addr.AddRtAttr(mptcpAddrFlags, nl.Uint32Attr(mptcpFlagSignal))
		if err := mptcpCall(family, mptcpCmdAddAddr, addr); err != nil {
			return false, err
		}
	}
	return true, nil
}

func mptcpCall(family uint16, command uint8, attrs ...*nl.RtAttr) error {
	_, err := kernel.GenlCall(family, kernel.GenlHeader{Command: command, Version: mptcpVersion}, attrs...)
	return err
}
