// Package open opens the directory of a mesh by its name, as weft host's configuration and
// programs' flags have it:
//
//	etcd://10.0.0.2:2379,10.0.0.3:2379/weft/mesh/production   hosts register on etcd
//	etcds://etcd.example:2379/weft/mesh/production?ca=/etc/weft/ca.pem&cert=…&key=…   by TLS
//	etcds://etcd.example:2379/weft/mesh/production?user=a&password_file=/etc/weft/etcd-password
//	file:///etc/weft/members.json   a file says who is there
//	dns:mesh.example                a domain does
package open

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"weft/internal/etcdclient"
	"weft/mesh/etcd"
	"weft/mesh/join"
	"weft/mesh/lists"
)

// Name is where a directory is. The zero value is none.
type Name struct {
	kind      string // the scheme
	endpoints []string
	path      string // of keys, of the file; the domain
	tls       etcdclient.TLS

	user, passwordFile string
}

// Forms says how a directory is named.
const Forms = "etcd://HOST:PORT,HOST:PORT/PREFIX, etcds://… with TLS, file:///PATH or dns:DOMAIN"

// Options are what a name does not say.
type Options struct {
	TTL time.Duration // see etcd.Config; 0: its default
}

var domain = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_-]{0,62})\.)*[A-Za-z0-9_][A-Za-z0-9_-]{0,62}\.?$`)

// Parse reads a name. It looks at no file, and asks nobody.
func Parse(name string) (n Name, err error) {
	kind, rest, ok := strings.Cut(name, ":")
	if !ok {
		return n, fmt.Errorf("%q names no directory: write %s", name, Forms)
	}
	n.kind = kind
	switch kind {
	case "etcd", "etcds":
		err = n.parseEtcd(rest)
	case "file":
		n.path, ok = strings.CutPrefix(rest, "//")
		if !ok || !path.IsAbs(n.path) || strings.HasSuffix(n.path, "/") {
			err = errors.New("a file is named by its whole path, such as file:///etc/weft/members.json")
		}
	case "dns":
		if n.path = rest; len(rest) > 240 || !domain.MatchString(rest) {
			err = errors.New("that is no domain: write one such as dns:mesh.example")
		}
	default:
		err = fmt.Errorf("%s is no kind of directory: write %s", kind, Forms)
	}
	if err != nil {
		return Name{}, fmt.Errorf("%q: %w", name, err)
	}
	return n, nil
}

// parseEtcd reads what follows the scheme.
func (n *Name) parseEtcd(rest string) error {
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return fmt.Errorf("two slashes are missing: write %s://HOST:PORT/PREFIX", n.kind)
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, prefix, _ := strings.Cut(rest, "/")
	n.endpoints, n.path = strings.Split(hosts, ","), "/"+prefix
	if err := etcdclient.CheckEndpoints(n.endpoints); err != nil {
		return fmt.Errorf("endpoints: %w", err)
	}
	if prefix == "" || strings.HasSuffix(prefix, "/") || len(prefix) > 200 || strings.ContainsAny(prefix, "\x00#") {
		return fmt.Errorf("the keys' prefix %q must have 1 to 200 bytes and not end with a slash: write one behind the hosts, such as /weft/mesh/production", prefix)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return err
	}
	for option, value := range values {
		if !slices.Contains([]string{"ca", "cert", "key", "user", "password_file"}, option) || len(value) != 1 || value[0] == "" {
			return fmt.Errorf("option %q: ca, cert, key and password_file are known, each once and with a file's name, and user", option)
		}
	}
	n.tls = etcdclient.TLS{CA: values.Get("ca"), Cert: values.Get("cert"), Key: values.Get("key")}
	n.user, n.passwordFile = values.Get("user"), values.Get("password_file")
	if (n.user == "") != (n.passwordFile == "") {
		return errors.New("user and password_file belong together: give both or none")
	}
	if n.tls != (etcdclient.TLS{}) && n.kind == "etcd" {
		return errors.New("ca, cert and key are of TLS: write etcds: instead of etcd:")
	}
	if (n.tls.Cert == "") != (n.tls.Key == "") {
		return errors.New("cert and key belong together: give both or none")
	}
	return nil
}

// Registers reports whether hosts register in the directory. Others write those of other kinds.
func (n Name) Registers() bool { return n.kind == "etcd" || n.kind == "etcds" }

// Open opens the directory. It does not wait for it.
func (n Name) Open(o Options) (join.Directory, error) {
	switch n.kind {
	case "file":
		return lists.File(n.path), nil
	case "dns":
		return lists.DNS(n.path, 0), nil
	case "":
		return nil, errors.New("no directory is named: write " + Forms)
	}
	ttl := o.TTL
	if ttl == 0 {
		ttl = etcd.DefaultTTL
	}
	c := etcd.Config{Prefix: n.path, TTL: ttl}
	secure, err := n.tls.Config(os.ReadFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.kind, err)
	}
	if n.kind == "etcd" {
		secure = nil
	}
	var user *etcdclient.User
	if n.user != "" {
		user = &etcdclient.User{Name: n.user, Password: etcdclient.PasswordFile(n.passwordFile, os.ReadFile)}
		if _, err := user.Password(); err != nil {
			return nil, fmt.Errorf("%s: %w", n.kind, err)
		}
	}
	client, err := etcdclient.New(n.endpoints, secure, user, ttl)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.kind, err)
	}
	c.Client = client
	d, err := etcd.Open(c)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return owner{d, client}, nil
}

// Directory parses a name and opens the directory. It does not wait for it.
func Directory(name string, o Options) (join.Directory, error) {
	n, err := Parse(name)
	if err != nil {
		return nil, err
	}
	return n.Open(o)
}

// owner is a directory whose client nobody else has.
type owner struct {
	join.Directory
	client io.Closer
}

// Close is join.Directory's.
func (o owner) Close() error { return errors.Join(o.Directory.Close(), o.client.Close()) }
