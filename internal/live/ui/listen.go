package ui

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/net/netutil"
)

// DefaultListen is where the page is if nobody says where.
const DefaultListen = "127.0.0.1:9470"

// maxConnections bounds those that are open at a time: a browser has six to one page.
const maxConnections = 6 * maxClients

// ErrReachable is of an address that others than this host reach.
var ErrReachable = errors.New("can be reached from the network, and the page has neither encryption nor a password")

// Listener is where a Server answers.
type Listener struct {
	listener net.Listener
	unix     string // the path of a socket, or ""
}

// Listen opens an address and a port, or a Unix socket if at is a path. An address that is not
// this host's alone needs remote; its error is ErrReachable.
func Listen(at string, remote bool) (*Listener, error) {
	if strings.HasPrefix(at, "/") || strings.HasPrefix(at, ".") {
		return listenUnix(at)
	}
	a, err := netip.ParseAddrPort(at)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is no address and port, nor the path of a socket; write one such as %s or /run/weft-ui.sock", at, DefaultListen)
	case !a.Addr().Unmap().IsLoopback() && !remote:
		return nil, fmt.Errorf("%v %w; write 127.0.0.1:%d and come by ssh -L %[3]d:127.0.0.1:%[3]d", a, ErrReachable, a.Port())
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("%w; choose another port, or 0 for any", err)
	}
	return &Listener{listener: netutil.LimitListener(l, maxConnections)}, nil
}

// listenUnix opens a socket that its owner alone may use. It replaces one at which nobody answers.
func listenUnix(path string) (*Listener, error) {
	if st, err := os.Lstat(path); err == nil && st.Mode().Type() == fs.ModeSocket {
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			return nil, fmt.Errorf("%s: somebody answers there already; choose another path", path)
		}
		os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Listener{netutil.LimitListener(l, maxConnections), path}, nil
}

// Remote reports whether others than this host reach it.
func (l *Listener) Remote() bool {
	a, err := netip.ParseAddrPort(l.listener.Addr().String())
	return l.unix == "" && err == nil && !a.Addr().Unmap().IsLoopback()
}

// URL is the address of the page, with a key unless that is "".
func (l *Listener) URL(key string) string {
	if key != "" {
		key = "#key=" + key
	}
	if l.unix != "" {
		return l.unix + key
	}
	return "http://" + l.listener.Addr().String() + "/" + key
}

// Close closes a listener that no Server has served.
func (l *Listener) Close() error { return l.listener.Close() }
