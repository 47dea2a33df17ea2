package throughput

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"github.com/vishvananda/netlink"
)

// wireguard is the kernel's TCP through a tunnel of wireguard-go's; bare is without its
// cryptography.
func wireguard(bare bool) way {
	return way{
		supports: func(ctx context.Context, b *bench) error {
			if err := needTUN(ctx, b); err != nil {
				return err
			}
			return b.buildForwarder(ctx)
		},
		around: forwardNothing,
		helper: func(ctx context.Context, b *bench, c Case, s site) (*process, error) {
			return startForwarder(ctx, b, c, s, bare)
		},
		open: openInside,
	}
}

// openInside is the kernel's TCP between the addresses inside a tunnel.
func openInside(s site) (*host, error) { return kernelHost(innerAddr(s), false), nil }

const (
	tunnelDevice = "wg0"
	tunnelMTU    = 1420 // wg-quick's; without cryptography 28 bytes are added to a packet
	tunnelPort   = 51820
)

// buildForwarder compiles the forwarder, and makes the keys of both ends, unless that was done
// already.
func (b *bench) buildForwarder(ctx context.Context) (err error) {
	if b.forwarder != "" {
		return nil
	}
	for i := range b.wireguardKeys {
		if b.wireguardKeys[i], err = ecdh.X25519().GenerateKey(rand.Reader); err != nil {
			return err
		}
	}
	b.forwarder, err = b.compile(ctx, b.options.Wireguard, ".", "bench/wireguard")
	return err
}

func startForwarder(ctx context.Context, b *bench, c Case, s site, bare bool) (*process, error) {
	outer := netip.AddrPortFrom(s.topology.Node(s.peer).Addr, tunnelPort)
	argv := []string{b.forwarder, "-tun", tunnelDevice, "-mtu", strconv.Itoa(tunnelMTU),
		"-port", strconv.Itoa(tunnelPort), "-peer", outer.String()}
	if bare {
		argv = append(argv, "-bare")
	} else {
		own, other := b.wireguardKeys[0], b.wireguardKeys[1]
		if s.self != b.from {
			own, other = other, own
		}
		file := filepath.Join(b.scratch, s.topology.Node(s.self).Name+".wireguard")
		if err := os.WriteFile(file, []byte(hex.EncodeToString(own.Bytes())), 0o600); err != nil {
			return nil, err
		}
		argv = append(argv, "-key", file, "-peer-key", hex.EncodeToString(other.PublicKey().Bytes()))
	}
	if file := b.profile(c, job{Self: s.self, Carry: true}); file != "" {
		argv = append(argv, "-profile", file)
	}
	p, err := b.start(s.self, argv)
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
