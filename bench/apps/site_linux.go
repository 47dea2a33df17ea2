package apps

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"weft/topology"
)

// site is where the programs' data are: the same for all labs, as hosts have the same names.
type site struct {
	dir   string // of all directories
	bytes int    // about what a client moves
	users map[string]*syscall.Credential
}

// work is an app as programs: one server and one client at each host.
type work interface {
	// prepare makes the data that servers have, once.
	prepare(ctx context.Context, s *site, hosts []topology.Node) error
	// server is the server of a host, which listens at the port.
	server(s *site, h topology.Node) *exec.Cmd
	port() uint16
	// ready says whether a server that listens answers.
	ready(s *site, h topology.Node) bool
	// stop is the signal at which servers end.
	stop() syscall.Signal
	// client is the client of a host. It has done its work when it ends, or when it has printed the
	// line until, if that is not empty.
	client(s *site, h topology.Node, server netip.Addr) (c *exec.Cmd, until string, err error)
	// read reads what the client at a host has printed. p99 is 0 if the program measures none, or
	// of so few requests that it would be their maximum.
	read(s *site, h topology.Node, text string) (p99Ms float64, err error)
}

// works are all apps but those of MPI.
var works = map[string]work{"redis": redis{}, "pgbench": pgbench{}, "nginx": nginx{}, "iperf3": iperf3{}, "rsync": rsync{}}

// common is what most servers do.
type common struct{}

func (common) prepare(context.Context, *site, []topology.Node) error { return nil }
func (common) ready(*site, topology.Node) bool                       { return true }
func (common) stop() syscall.Signal                                  { return syscall.SIGTERM }

func newSite(bytes int) (*site, error) {
	dir, err := os.MkdirTemp("", "weft-apps-")
	if err != nil {
		return nil, err
	}
	// Servers that do not run as root have directories in it.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &site{dir: dir, bytes: bytes, users: make(map[string]*syscall.Credential)}, nil
}

func (s *site) remove() error { return os.RemoveAll(s.dir) }

// at is the directory of a program at a host.
func (s *site) at(h topology.Node, program string) string {
	return filepath.Join(s.dir, h.Name, program)
}

// makeDirs makes directories of programs at all hosts, for a user if that is not nil.
func (s *site) makeDirs(hosts []topology.Node, user *syscall.Credential, programs ...string) error {
	for _, h := range hosts {
		for _, p := range programs {
			dir := s.at(h, p)
			if err := os.MkdirAll(dir, 0o711); err != nil {
				return err
			}
			if user == nil {
				continue
			}
			if err := os.Chown(dir, int(user.Uid), int(user.Gid)); err != nil {
				return err
			}
		}
	}
	return nil
}

// systemUser is the first of these users that there is.
func (s *site) systemUser(names ...string) (*syscall.Credential, error) {
	key := names[0]
	if c := s.users[key]; c != nil {
		return c, nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		s.users[key] = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return s.users[key], nil
	}
	return nil, fmt.Errorf("none of the users %s is there: create one", strings.Join(names, ", "))
}

// find returns where a program is. PostgreSQL's and nginx' are where the shell does not look.
func find(file string) (string, error) {
	path, err := exec.LookPath(file)
	if err == nil {
		return path, nil
	}
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + file) // the pattern is right
	all = slices.DeleteFunc(append(all, "/usr/sbin/"+file), func(p string) bool { _, err := exec.LookPath(p); return err != nil })
	if len(all) == 0 {
		return "", err
	}
	slices.SortFunc(all, newest)
	return all[0], nil
}

// newest puts the files of higher versions of PostgreSQL first.
func newest(a, b string) int {
	version := func(p string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(p)))) // 0: no version
		return n
	}
	return version(b) - version(a)
}

// where is find for what has been found before.
func where(file string) string {
	path, err := find(file)
	if err != nil {
		return file // it fails to start, by this name
	}
	return path
}
