package daemon

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"weft/encap"
)

// encryptionNone is the UDP.Encryption of peers without keys.
const encryptionNone = "none"

// keyReader is who must be able to read key files.
const keyReader = "the user that weft host runs as"

func (c *Config) checkUDP() error {
	if err := c.between("udp.paths", c.UDP.Paths, 1, maxPaths); err != nil {
		return err
	}
	if err := c.oneOf("udp.encryption", c.UDP.Encryption, encryptionNone, encap.UDPGMAC.String(), encap.UDPAESGCM.String(), encap.UDPChaCha20Poly1305.String()); err != nil {
		return err
	}
	if err := c.checkMesh(); err != nil {
		return err
	}
	if c.tunnels() && len(c.UDP.Peers) == 0 && !c.joins() {
		return c.lines.Errorf("udp.peers", "has no peer; encapsulation: udp needs one, or udp.directory")
	}
	if len(c.UDP.Peers) > maxPeers {
		return c.lines.Errorf("udp.peers", "has %d peers, must have at most %d", len(c.UDP.Peers), maxPeers)
	}
	names := map[string]bool{c.UDP.Name: true}
	prefixes := make(map[netip.Prefix]string)
	for i := range c.UDP.Peers {
		p := &c.UDP.Peers[i]
		key := fmt.Sprintf("udp.peers[%d]", i)
		if p.Name == "" || len(p.Name) > 255 || names[p.Name] {
			return c.lines.Errorf(key+".name", "is %q; each peer needs a name of its own of at most 255 bytes", p.Name)
		}
		names[p.Name] = true
		if err := c.checkPeer(key, p); err != nil {
			return err
		}
		for j, prefix := range p.Prefixes {
			at := fmt.Sprintf("%s.prefixes[%d]", key, j)
			if prefix != prefix.Masked() {
				return c.lines.Errorf(at, "%s has bits behind its length; write %s", prefix, prefix.Masked())
			}
			if other, ok := prefixes[prefix]; ok {
				return c.lines.Errorf(at, "%s is %s's already; remove one", prefix, other)
			}
			prefixes[prefix] = p.Name
		}
	}
	return nil
}

func (c *Config) checkPeer(key string, p *Peer) error {
	if len(p.Prefixes) == 0 {
		return c.lines.Errorf(key+".prefixes", "is empty; name what is behind %s, such as 10.9.0.2/32", p.Name)
	}
	host, port, err := net.SplitHostPort(p.Endpoint)
	if n, err2 := strconv.ParseUint(port, 10, 16); err != nil || err2 != nil || n == 0 || host == "" {
		return c.lines.Errorf(key+".endpoint", "%q is not an address or a name with a port, such as 192.0.2.7:5740", p.Endpoint)
	}
	return c.checkKeys(key, p)
}

// cipher is what the keys do.
func (u *UDP) cipher() (c encap.UDPCipher) {
	c.UnmarshalText([]byte(u.Encryption)) // checked; none is of no key
	return c
}

// checkKeys reads a peer's keys.
func (c *Config) checkKeys(key string, p *Peer) (err error) {
	if err := c.between(key+".key_id", p.KeyID, 0, 255); err != nil {
		return err
	}
	if err := c.between(key+".accept_key_id", p.AcceptKeyID, 0, 255); err != nil {
		return err
	}
	if p.secret, _, err = c.lines.Secret(key+".key", p.Key, p.KeyFile, keyReader); err != nil {
		return err
	}
	p.cipher = c.UDP.cipher()
	if p.accept, _, err = c.lines.Secret(key+".accept_key", p.AcceptKey, p.AcceptKeyFile, keyReader); err != nil {
		return err
	}
	switch {
	case p.secret != [32]byte{} && c.UDP.Encryption == encryptionNone:
		return c.lines.Errorf(key+".key", "is given, but udp.encryption is none; take the key away, or name what it is to do: gmac, aes-gcm or chacha20poly1305")
	case p.accept == [32]byte{}:
		return nil
	case p.secret == [32]byte{}:
		return c.lines.Errorf(key+".accept_key", "is given, but key is not; it is for a peer with a key, while that is exchanged")
	case p.accept == p.secret || p.AcceptKeyID == p.KeyID:
		return c.lines.Errorf(key+".accept_key_id", "is %d, must be another than key_id, and of another key", p.AcceptKeyID)
	}
	return nil
}
