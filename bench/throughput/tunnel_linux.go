package throughput

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"weft/encap"
	"weft/link"
	"weft/stack"
)

const (
	udpPort  = 5740
	noCipher = "none" // as in udp.encryption
)

// ciphers are those of keys, by their names in configurations.
var ciphers = []string{encap.UDPGMAC.String(), encap.UDPAESGCM.String(), encap.UDPChaCha20Poly1305.String()}

// needKey makes the key of both ends, unless it was made already.
func (b *bench) needKey() error {
	name := keyFile(b.scratch)
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	return os.WriteFile(name, []byte(base64.StdEncoding.EncodeToString(secret[:])+"\n"), 0o600)
}

func keyFile(scratch string) string { return filepath.Join(scratch, "tunnel.key") }

// readKey returns the key that needKey has made, for a cipher; nil without one.
func readKey(s site, cipher string) (*encap.UDPKey, error) {
	if cipher == noCipher {
		return nil, nil
	}
	var k encap.UDPKey
	if err := k.Cipher.UnmarshalText([]byte(cipher)); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(keyFile(s.scratch))
	if err != nil {
		return nil, err
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) != len(k.Secret) {
		return nil, fmt.Errorf("the key is not %d bytes in base64: %w", len(k.Secret), err)
	}
	k.Secret = [32]byte(secret)
	return &k, nil
}

// tunnelled is weft in a process without any privilege, over UDP.
func tunnelled(policyName, cipher string) way {
	return way{supports: func(_ context.Context, b *bench) error { return b.needKey() }, open: func(s site) (*host, error) {
		key, err := readKey(s, cipher)
		if err != nil {
			return nil, err
		}
		underlay, err := link.OpenUDP(link.UDPConfig{Listen: netip.AddrPortFrom(s.topology.Node(s.self).Addr, udpPort)})
		if err != nil {
			return nil, err
		}
		return newHost(s, stack.Config{
			Address: innerAddr(s),
			Policy:  policyName,
			Tunnel: &stack.Tunnel{
				Underlay: underlay,
				Name:     s.topology.Node(s.self).Name,
				Peers: []stack.Peer{{
					Name:     s.topology.Node(s.peer).Name,
					Endpoint: netip.AddrPortFrom(s.topology.Node(s.peer).Addr, udpPort),
					Prefixes: []netip.Prefix{netip.PrefixFrom(innerAddr(other(s)), 32)},
					Key:      key,
				}},
			},
		}, underlay.Close)
	}}
}

// tunnelledHost is the kernel's TCP with weft host beside it at both ends, over UDP.
func tunnelledHost(cipher string) way {
	return way{
		supports: func(ctx context.Context, b *bench) error { return errors.Join(needTUN(ctx, b), b.needKey()) },
		around:   forwardNothing,
		helper:   startCarrier,
		carry: func(s site) (*host, error) {
			self, peer := s.topology.Node(s.self), s.topology.Node(s.peer)
			key := ""
			if cipher != noCipher {
				key = ", key_file: " + keyFile(s.scratch)
			}
			return runDaemon(s, []string{
				"encapsulation: udp", "policy: presto",
				fmt.Sprintf("tun: {addresses: [%v/32]}", innerAddr(s)),
				fmt.Sprintf("udp: {name: %s, listen: '%v:%d', encryption: %s, peers: [{name: %s, prefixes: [%v/32], endpoint: '%v:%d'%s}]}",
					self.Name, self.Addr, udpPort, cipher, peer.Name, innerAddr(other(s)), peer.Addr, udpPort, key),
			})
		},
		open: openInside,
	}
}

// other is the other end of a site.
func other(s site) site { return site{s.topology, s.peer, s.self, s.scratch} }

// innerAddr is the host's address inside a tunnel.
func innerAddr(s site) netip.Addr {
	last := byte(1)
	if s.self > s.peer {
		last = 2
	}
	return netip.AddrFrom4([4]byte{192, 168, 77, last})
}
