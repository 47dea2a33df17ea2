//go:build !linux

package daemon

import "net/netip"

func deviceTo(netip.Addr) string { return "" }
