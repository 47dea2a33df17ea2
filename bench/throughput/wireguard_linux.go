package throughput

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
)

var wireguard = way{
	supports: func(b *bench) error {
		if err := needTUN(b); err != nil {
			return err
		}
		return b.buildForwarder()
	},
	helper: startForwarder,
	open:   func(s site) (*host, error) { return kernelHost(innerAddr(s), false), nil },
}

const (
	tunnelDevice = "wg0"
	tunnelMTU    = 1420 // wg-quick's, though nothing is added to a packet here but 28 bytes
	tunnelPort   = 51820
)

// buildForwarder compiles the forwarder unless it was compiled already. It
// downloads nothing.
func (b *bench) buildForwarder() error {
	source := b.options.Wireguard
	if _, err := os.Stat(filepath.Join(source, "go.mod")); err != nil {
		return fmt.Errorf("no source of the forwarder in %q: run weft in its source tree, or say where bench/wireguard is", source)
	}
	b.forwarder = filepath.Join(b.scratch, "forwarder")
	cmd := exec.Command("go", "build", "-o", b.forwarder, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in %s: %w: %s (if modules are missing: cd %s && go mod download)", source, err, strings.TrimSpace(string(out)), source)
	}
	return nil
}

func startForwarder(ctx context.Context, b *bench, _ Case, s site) (*process, error) {
	outer := netip.AddrPortFrom(s.topology.Node(s.peer).Addr, tunnelPort)
	p, err := b.start(s.self, []string{b.forwarder, "-tun", tunnelDevice, "-mtu", strconv.Itoa(tunnelMTU),
		"-port", strconv.Itoa(tunnelPort), "-peer", outer.String()})
	if err != nil {
		return nil, err
	}
	if _, err = p.answer(ctx); err == nil {
		err = b.lab.Do(s.self, func() error { return configureTunnel(innerAddr(s)) })
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func configureTunnel(address netip.Addr) error {
	device, err := netlink.LinkByName(tunnelDevice)
	if err != nil {
		return fmt.Errorf("interface %s: %w", tunnelDevice, err)
	}
	net30 := &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(30, 32)}
	if err := netlink.AddrReplace(device, &netlink.Addr{IPNet: net30}); err != nil {
		return fmt.Errorf("address %s on %s: %w", address, tunnelDevice, err)
	}
	if err := netlink.LinkSetUp(device); err != nil {
		return fmt.Errorf("set %s up: %w", tunnelDevice, err)
	}
	return nil
}
