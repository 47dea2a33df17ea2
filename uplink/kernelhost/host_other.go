//go:build !linux

package kernelhost

import (
	"errors"
	"net/netip"
	"syscall"

	"weft/internal/daemon"
)

func embed(daemon.EmbedConfig) (embedded, error) {
	return nil, errors.New("needs the routing rules, TUN and eBPF of Linux; elsewhere stack.New runs netstack")
}

func bindTo(syscall.RawConn, netip.Addr) error { return errors.ErrUnsupported }
