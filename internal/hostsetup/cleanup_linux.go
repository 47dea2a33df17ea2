package hostsetup

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"weft/internal/hostprog"
	"weft/internal/kernel"
)

// Cleanup removes all that a dead daemon has left in the network namespace of the calling
// thread: rules, routes, settings, programs, files, limits of connections. It says what there was; a second call
// finds nothing. It fails while a daemon runs.
func Cleanup() (removed []string, err error) {
	if err := kernel.RequireCapability(unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"); err != nil {
		return nil, fmt.Errorf("clean up the host: %w", err)
	}
	s, err := openHostSetup()
	if err != nil {
		return nil, err
	}
	for _, step := range []func() (string, error){s.detachPrograms, s.freePaced, s.countRules, s.countRoutes, s.countSettings, s.countAddresses} {
		did, err2 := step()
		if did != "" {
			removed = append(removed, did)
		}
		err = errors.Join(err, err2)
	}
	err = errors.Join(err, s.undo())
	s.close(err == nil)
	if err != nil {
		return removed, fmt.Errorf("clean up the host: %w", err)
	}
	if keys := s.Unknown(); len(keys) > 0 {
		removed = append(removed, fmt.Sprintf("left to the version of weft that made it: %s", strings.Join(keys, ", ")))
	}
	return removed, nil
}

func (s *Setup) countRules() (string, error) {
	gone, err := syncHostRules(s.h, nil)
	return count(len(gone), "rule"), err
}

func (s *Setup) countRoutes() (string, error) {
	gone, err := syncHostRoutes(s.h, nil)
	return count(len(gone), "route"), err
}

func (s *Setup) countSettings() (string, error) {
	return count(len(s.state.Sysctls), "setting"), nil
}

func (s *Setup) countAddresses() (string, error) {
	if s.state.LinkLocal == nil {
		return "", nil
	}
	return "1 address", nil
}

func count(n int, what string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// DetachLeftovers removes the programs of a dead daemon from all devices of the calling
// thread's network namespace. Packets then follow the routing tables. It needs
// CAP_SYS_ADMIN, and fails while a daemon runs.
func DetachLeftovers() error {
	s, err := openHostSetup()
	if err != nil {
		return err
	}
	defer s.close(false)
	_, err = s.detachPrograms()
	return err
}

// FreeLeftPaced is hostprog.FreeLeftPaced for what a dead daemon has left. It fails while a
// daemon runs.
func FreeLeftPaced() (int, error) {
	lock, err := TakeLock()
	if err != nil {
		return 0, err
	}
	defer lock.Release()
	return hostprog.FreeLeftPaced()
}

func (s *Setup) freePaced() (string, error) {
	n, err := hostprog.FreeLeftPaced()
	return count(n, "limited connection"), err
}

// mostLeft bounds the programs that are removed at one place. The kernel takes 64 (BPF_MPROG_MAX).
const mostLeft = 64

// detachPrograms looks at every device: the daemon may have died before it wrote
// down which one it uses. There are several at one place if daemons without CAP_SYS_ADMIN have
// died one after the other: none could remove its predecessor's.
func (s *Setup) detachPrograms() (string, error) {
	links, err := kernel.Dumped(s.h.LinkList)
	if err != nil {
		return "", kernel.Explain(fmt.Errorf("list the links: %w", err))
	}
	n := 0
	for _, l := range links {
		for _, detach := range []func(string) (int, error){hostprog.DetachSpray, hostprog.DetachSteer} {
			did, err2 := 1, error(nil)
			for left := 0; did > 0 && err2 == nil && left < mostLeft; left++ {
				did, err2 = detach(l.Attrs().Name)
				n += did
			}
			err = errors.Join(err, err2)
		}
	}
	return count(n, "program"), err
}
