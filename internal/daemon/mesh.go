package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weft/encap"
	"weft/mesh"
	"weft/mesh/join"
	"weft/mesh/keyfile"
	"weft/mesh/open"
)

// Off is the UDP.Directory of a tunnel whose peers are in the file.
const Off = "off"

// joins reports whether a directory says who the peers are.
func (c *Config) joins() bool { return c.tunnels() && c.UDP.Directory != Off }

// meshKeyed reports whether the host has a key there.
func (c *Config) meshKeyed() bool { return c.joins() && c.UDP.Encryption != encryptionNone }

// Bounds of a membership.
const (
	minRenew  = time.Second
	maxLinger = 24 * time.Hour
)

func (c *Config) checkMesh() error {
	u := &c.UDP
	if u.Directory == Off {
		return c.checkNoMesh()
	}
	name, err := open.Parse(u.Directory)
	switch {
	case err != nil:
		return c.lines.Errorf("udp.directory", "%w", err)
	case len(u.Peers) > 0:
		return c.lines.Errorf("udp.peers", "are given, and udp.directory, which says who they are; remove one")
	case u.Renew != 0 && !name.Registers():
		return c.lines.Errorf("udp.renew", "is %v, but hosts cannot write %s; renewing needs etcd: set it to 0s", u.Renew, u.Directory)
	case u.Renew != 0 && u.Encryption == encryptionNone:
		return c.lines.Errorf("udp.renew", "is %v, but with udp.encryption: none there is no key; set it to 0s", u.Renew)
	case u.Renew != 0 && u.Renew < minRenew:
		return c.lines.Errorf("udp.renew", "is %v, must be 0s (never) or at least %v", u.Renew, minRenew)
	case u.Linger < 0 || u.Linger > maxLinger:
		return c.lines.Errorf("udp.linger", "is %v, must be from 0s to %v", u.Linger, maxLinger)
	case u.TTL < time.Second || u.TTL > time.Hour || u.TTL%time.Second != 0:
		return c.lines.Errorf("udp.ttl", "is %v, must be whole seconds from 1s to 1h", u.TTL)
	case u.PrivateKeyFile != "" && u.Encryption == encryptionNone:
		return c.lines.Errorf("udp.private_key_file", "is given, but udp.encryption is none; remove one")
	case u.Endpoint != netip.AddrPort{} && u.Endpoint.Addr().Unmap().Is4() != u.Listen.Addr().Unmap().Is4():
		return c.lines.Errorf("udp.endpoint", "%s is not of the family of udp.listen, %s; change one of them, or write auto", u.Endpoint, u.Listen)
	}
	if u.PrivateKeyFile != "" {
		if _, err := keyfile.Read(u.PrivateKeyFile); err != nil {
			return c.lines.Errorf("udp.private_key_file", "%w; %s must own it", err, keyReader)
		}
	}
	for key, list := range map[string][]netip.Prefix{"prefixes": u.Prefixes, "within": u.Within} {
		for i, p := range list {
			if p != p.Masked() {
				return c.lines.Errorf(fmt.Sprintf("udp.%s[%d]", key, i), "%s has bits behind its length; write %s", p, p.Masked())
			}
		}
	}
	return c.checkMember()
}

// checkMember checks what of a registration is in the file. The rest is found out later.
func (c *Config) checkMember() error {
	u := &c.UDP
	m := mesh.Member{Name: "this host", Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}}
	if u.Endpoint.IsValid() {
		m.Endpoints[0] = u.Endpoint
	}
	if _, err := m.Encode(); err != nil {
		return c.lines.Errorf("udp.endpoint", "%w; write an address that others reach, or auto", err)
	}
	if len(u.Prefixes) > 0 {
		m.Prefixes = u.Prefixes
	}
	if _, err := m.Encode(); err != nil {
		return c.lines.Errorf("udp.prefixes", "%w; remove what is too much", err)
	}
	return nil
}

// checkNoMesh refuses what would have no effect.
func (c *Config) checkNoMesh() error {
	u := &c.UDP
	for key, given := range map[string]bool{"prefixes": len(u.Prefixes) > 0, "within": len(u.Within) > 0, "endpoint": u.Endpoint.IsValid(), "private_key_file": u.PrivateKeyFile != "", "renew": u.Renew != 0} {
		if given {
			return c.lines.Errorf("udp."+key, "is given, but udp.directory is off, which it is for; remove one")
		}
	}
	return nil
}

// member is what the host is for others, as far as the machine says what the configuration
// does not.
func (c *Config) member(name string) (o join.Config, err error) {
	u := &c.UDP
	o = join.Config{Name: name, Prefixes: u.Prefixes, Within: u.Within, Open: u.Encryption == encryptionNone, Cipher: u.cipher(), Renew: u.Renew, Linger: u.Linger}
	at := u.Endpoint
	if !at.IsValid() {
		if at, err = c.reachedAt(); err != nil {
			return o, c.lines.Errorf("udp.endpoint", "auto: %w; write where others reach this host, such as 192.0.2.7:5740", err)
		}
	}
	o.Endpoints = []netip.AddrPort{at}
	switch a := c.Address; {
	case len(o.Prefixes) > 0:
	case a.IsValid():
		o.Prefixes = []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}
	case len(c.TUN.Addresses) > 0:
		for _, p := range c.TUN.Addresses {
			o.Prefixes = append(o.Prefixes, netip.PrefixFrom(p.Addr(), p.Addr().BitLen()))
		}
	default:
		o.Prefixes = []netip.Prefix{netip.PrefixFrom(at.Addr(), at.Addr().BitLen())}
	}
	return o, nil
}

// reachedAt finds out where others reach the host.
func (c *Config) reachedAt() (netip.AddrPort, error) {
	listen := c.UDP.Listen
	a := listen.Addr().Unmap()
	if listen.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("udp.listen, %s, has no port", listen)
	}
	if !a.IsUnspecified() {
		return netip.AddrPortFrom(a, listen.Port()), nil
	}
	if len(c.Uplink) > 0 {
		d, err := net.InterfaceByName(c.Uplink[0])
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("uplink %s: %w", c.Uplink[0], err)
		}
		all, err := d.Addrs()
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("uplink %s: %w", c.Uplink[0], err)
		}
		for _, x := range all {
			if p, err := netip.ParsePrefix(x.String()); err == nil && p.Addr().Is4() == a.Is4() && p.Addr().IsGlobalUnicast() {
				return netip.AddrPortFrom(p.Addr(), listen.Port()), nil
			}
		}
		return netip.AddrPort{}, fmt.Errorf("uplink %s has no address of the family of udp.listen, %s", c.Uplink[0], listen)
	}
	anywhere := "192.0.2.1:9" // nothing is sent
	if a.Is6() {
		anywhere = "[2001:db8::1]:9"
	}
	s, err := net.Dial("udp", anywhere)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("there is no default route: %w", err)
	}
	defer s.Close()
	own, err := netip.ParseAddrPort(s.LocalAddr().String())
	return netip.AddrPortFrom(own.Addr(), listen.Port()), err
}

// stateDir is where the private key is that the daemon makes.
func stateDir() string {
	if dir := os.Getenv("STATE_DIRECTORY"); filepath.IsAbs(dir) {
		return dir
	}
	return "/var/lib/weft"
}

// keyFile is where the private key is.
func (c *Config) keyFile() string {
	if c.UDP.PrivateKeyFile != "" {
		return c.UDP.PrivateKeyFile
	}
	return filepath.Join(stateDir(), "mesh.key")
}

// besideKey is where a file is that the daemon makes for a private key: beside it, or among what the daemon
// keeps, if the key's folder cannot be written, as of a Kubernetes Secret. There the key's path is its name, so
// that hosts on one machine that have keys of their own do not have one identity.
func (c *Config) besideKey(ending string) (beside, kept string) {
	beside = c.keyFile() + ending
	if c.UDP.PrivateKeyFile == "" {
		return beside, beside
	}
	path, err := filepath.Abs(c.keyFile())
	if err != nil { // there is no working directory
		path = c.keyFile()
	}
	name := strings.NewReplacer("%", "%25", "-", "%2D", "/", "-").Replace(strings.TrimPrefix(path, "/"))
	return beside, filepath.Join(stateDir(), name+ending)
}

func isThere(file string) bool { _, err := os.Stat(file); return err == nil }

// identityFile is where the host's identity is.
func (c *Config) identityFile() string {
	beside, kept := c.besideKey(".identity")
	if isThere(beside) || !isThere(kept) && canWrite(filepath.Dir(beside)) {
		return beside
	}
	return kept
}

// known are those that the host has seen. A file beside the key counts in any case.
func (c *Config) known() *keyfile.Known {
	beside, kept := c.besideKey(".known")
	if beside == kept || !isThere(kept) && canWrite(filepath.Dir(beside)) {
		return &keyfile.Known{Path: beside}
	}
	return &keyfile.Known{Path: kept, Also: beside}
}

// identity reads the host's identity, or makes it.
func (c *Config) identity() (mesh.Identity, error) {
	file, kept := c.identityFile(), filepath.Clean(stateDir())
	if filepath.Dir(file) == kept || filepath.Dir(c.known().Path) == kept {
		if err := os.MkdirAll(kept, 0o700); err != nil && filepath.Dir(file) == kept { // without it only new names cannot be kept, which the session says
			return mesh.Identity{}, err
		}
	}
	return keyfile.Identity(file)
}

// canWrite reports whether files can be made in a folder.
func canWrite(dir string) bool {
	f, err := os.CreateTemp(dir, ".weft-*")
	if err != nil {
		return false
	}
	return errors.Join(f.Close(), os.Remove(f.Name())) == nil
}

// meshKeys reads the private keys. It makes one if there is none and the configuration does not
// say where one is.
func (c *Config) meshKeys() ([]mesh.PrivateKey, error) {
	if c.UDP.PrivateKeyFile != "" {
		return keyfile.Read(c.UDP.PrivateKeyFile)
	}
	if err := os.MkdirAll(stateDir(), 0o700); err != nil {
		return nil, err
	}
	return keyfile.ReadOrMake(c.keyFile())
}

// leaveKeys lets a user have what the daemon makes: the private key, if the file does not say where one is, the
// files beside it, and their folder.
func (c *Config) leaveKeys(uid, gid int) error {
	if !c.meshKeyed() {
		return nil
	}
	own := func(files ...string) (err error) {
		for _, file := range files {
			if e := os.Lchown(file, uid, gid); err == nil && !errors.Is(e, fs.ErrNotExist) {
				err = e
			}
		}
		return err
	}
	identity, keptIdentity := c.besideKey(".identity")
	known, keptKnown := c.besideKey(".known")
	made := os.MkdirAll(stateDir(), 0o700)
	err := own(stateDir(), identity, keptIdentity, known, keptKnown)
	if c.UDP.PrivateKeyFile != "" { // its folder may be read-only; joinMesh says what the user cannot read or write
		return nil
	}
	if err = errors.Join(made, err, own(c.keyFile())); err != nil {
		return c.lines.Errorf("udp.private_key_file", "auto: %w; name a file that %s can write", err, keyReader)
	}
	return nil
}

// room is what the tunnel leaves before inner packets for peers that it does not know yet, in
// bytes.
func (c *Config) room() int {
	switch {
	case !c.joins():
		return 0
	case c.UDP.Encryption == encryptionNone:
		return encap.UDPOverhead
	}
	return c.UDP.cipher().Overhead()
}
