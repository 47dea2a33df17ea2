package open

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/etcdclient/etcdtest"
	"weft/internal/slowtest"
	"weft/mesh"
	"weft/mesh/join"
)

// authority makes certificates.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.make(t, "ca", &x509.Certificate{Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// make makes a certificate: NAME.pem and NAME-key.pem.
func (a *authority) make(t *testing.T, name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, b := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + "-key.pem": {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(a.file(file), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) server(t *testing.T) {
	a.make(t, "server", &x509.Certificate{Subject: pkix.Name{CommonName: "etcd"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
}

func (a *authority) client(t *testing.T, name string) {
	a.make(t, name, &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

const meshPrefix = "/weft/mesh/one"

// roles makes a user of each host that may read all and write its own name, and one that reads.
func roles(c *etcdtest.Cluster, password string) {
	add := func(user string) {
		if password == "" || user == "root" {
			c.Ctl("user", "add", user, "--no-password")
		} else {
			c.Ctl("user", "add", user+":"+password)
		}
		c.Ctl("role", "add", user)
		c.Ctl("user", "grant-role", user, user)
	}
	for _, user := range []string{"a", "b", "reader"} {
		add(user)
		c.Ctl("role", "grant-permission", "--prefix", user, "read", meshPrefix+"/members/")
		if user != "reader" {
			c.Ctl("role", "grant-permission", user, "readwrite", meshPrefix+"/members/"+fmt.Sprintf("%x", user))
		}
	}
}

func memberOf(name string, n byte) mesh.Member {
	return mesh.Member{Name: name, Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, 0, n}), 32)}}
}

// put registers, and tries again while etcd finds a leader.
func put(c *etcdtest.Cluster, d join.Directory, m mesh.Member) (err error) {
	c.Await("a registration is taken or refused", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err = d.Put(ctx, m)
		return err == nil || errors.Is(err, join.ErrTaken) || strings.Contains(err.Error(), "may not do that")
	})
	return err
}

// Three members of etcd that want certificates of their users: each host writes its own name alone,
// and who may only read follows all the same.
func TestDirectory_certificates(t *testing.T) {
	slowtest.System(t)
	a := newAuthority(t)
	a.server(t)
	for _, name := range []string{"root", "a", "b", "reader"} {
		a.client(t, name)
	}
	flags := []string{"--cert-file", a.file("server.pem"), "--key-file", a.file("server-key.pem"), "--trusted-ca-file", a.file("ca.pem"), "--client-cert-auth"}
	c := etcdtest.New(t, 3, "https", flags, []string{"--cacert", a.file("ca.pem"), "--cert", a.file("root.pem"), "--key", a.file("root-key.pem")})
	c.Ctl("user", "add", "root", "--no-password")
	c.Ctl("user", "grant-role", "root", "root")
	roles(c, "")
	c.Ctl("auth", "enable")
	open := func(user string) join.Directory {
		d, err := Directory(fmt.Sprintf("etcds://%s%s?ca=%s&cert=%s&key=%s", strings.Join(c.Clients, ","), meshPrefix, a.file("ca.pem"), a.file(user+".pem"), a.file(user+"-key.pem")), Options{TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	first, second, reader := open("a"), open("b"), open("reader")
	for d, name := range map[join.Directory]string{first: "a", second: "b"} {
		if err := put(c, d, memberOf(name, name[0])); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := open("b")
	if err := put(c, other, memberOf("c", 3)); err == nil || !strings.Contains(err.Error(), "may not do that") || !strings.Contains(err.Error(), "write the host's own key") {
		t.Errorf("b registers as c: %v", err)
	}
	if err := put(c, reader, memberOf("reader", 4)); err == nil {
		t.Error("who may read registers")
	}
	if u := told(t, reader); len(u.Put) != 2 {
		t.Errorf("%+v", u)
	}
	// A host that may not register says so, and has its peers.
	var peers int
	s, err := join.New(join.Config{Directory: open("reader"), Name: "reader", Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.5:1")}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.5/32")},
		Open: true, SetPeers: func(p []mesh.Peer) error { peers = len(p); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	c.Await("the status says why", func() bool {
		s := s.Status()
		return s.Following && !s.Registered && s.Peers == 2 && strings.Contains(s.Why, "may not do that")
	})
	if err := s.Close(); err != nil || peers != 2 {
		t.Errorf("%d peers, %v", peers, err)
	}
}

// Users with passwords: tokens that members of etcd have forgotten are got anew, and a wrong password
// is named. etcd is waited for by nobody.
func TestDirectory_passwords(t *testing.T) {
	slowtest.System(t)
	a := newAuthority(t)
	a.server(t)
	c := etcdtest.New(t, 3, "https", []string{"--cert-file", a.file("server.pem"), "--key-file", a.file("server-key.pem")}, []string{"--cacert", a.file("ca.pem"), "--user", "root:r"})
	c.Ctl("user", "add", "root:r")
	c.Ctl("user", "grant-role", "root", "root")
	roles(c, "secret")
	c.Ctl("auth", "enable")
	password := a.file("password")
	if err := os.WriteFile(password, []byte("wrong\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(user string) join.Directory {
		d, err := Directory(fmt.Sprintf("etcds://%s%s?ca=%s&user=%s&password_file=%s", strings.Join(c.Clients, ","), meshPrefix, a.file("ca.pem"), user, password), Options{TTL: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	first := open("a")
	var err error
	defer func() { t.Log("by a wrong password:", err) }()
	c.Await("a wrong password is named", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = first.Put(ctx, memberOf("a", 1))
		if err == nil {
			t.Fatal("registered by a wrong password")
		}
		return strings.Contains(err.Error(), "the password is wrong")
	})
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := put(c, first, memberOf("a", 1)); err != nil {
		t.Fatal(err)
	}
	if err := put(c, open("b"), memberOf("a", 1)); err == nil {
		t.Error("b registers as a")
	}
	watching, stop := context.WithCancel(t.Context())
	names := make(chan string, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		second := open("reader")
		for watching.Err() == nil {
			_ = second.Watch(watching, func(u join.Update) {
				for _, m := range u.Put {
					select {
					case names <- fmt.Sprint(m.Name, m.Seen):
					default:
					}
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
	}()
	for i := range c.Clients { // with each, its tokens are gone
		c.Kill(i)
		c.Start(i)
		m := memberOf("a", 1)
		m.Seen = int64(i + 1)
		if err := put(c, first, m); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprint("a", i+1)
		for end := time.After(2 * time.Minute); ; {
			select {
			case got := <-names:
				if got != want {
					continue
				}
			case <-end:
				t.Fatalf("%s is not told", want)
			}
			break
		}
	}
	stop()
	<-ended
}

func TestDirectory_passwordFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "\n", "long": strings.Repeat("x", 2000)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"none", "empty", "long"} {
		if _, err := Directory("etcd://127.0.0.1:1/weft?user=a&password_file="+filepath.Join(dir, file), Options{}); err == nil || !strings.Contains(err.Error(), "password_file") {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := Parse("etcd://a:1/weft?user=a"); err == nil || !strings.Contains(err.Error(), "belong together") {
		t.Error(err)
	}
}
