package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// HostSetup is a plan in force. Its methods are not safe for concurrent use.
// They must be called by threads in the network namespace of ApplyHost, as all
// of a process are that does not change it: /proc/sys/net is the thread's.
type HostSetup struct {
	plan     HostPlan
	diverted bool
	h        *netlink.Handle
	lock     *hostLock
	state    hostState
}

// ApplyHost configures the network namespace of the calling thread as planned,
// all but what leads into the TUN. What a crash left there is made part of it,
// and what was before the crash is what Restore puts back. It needs
// CAP_NET_ADMIN, a writable /proc/sys/net, and HostDir.
func ApplyHost(p HostPlan) (*HostSetup, error) {
	if err := requireCapability(unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"); err != nil {
		return nil, fmt.Errorf("set up the host: %w", err)
	}
	s, err := openHostSetup()
	if err != nil {
		return nil, err
	}
	if err := s.apply(p); err != nil {
		err = fmt.Errorf("set up the host: %w", err)
		if undo := s.Restore(); undo != nil {
			err = fmt.Errorf("%w (and undoing it: %w)", err, undo)
		}
		return nil, err
	}
	return s, nil
}

// openHostSetup locks the namespace and reads what a crash left.
func openHostSetup() (*HostSetup, error) {
	dir, err := MakeHostDir(-1, -1)
	if err != nil {
		return nil, err
	}
	lock, err := lockHost(dir)
	if err != nil {
		return nil, err
	}
	s := &HostSetup{lock: lock}
	if s.state, err = lock.read(); err != nil {
		lock.release()
		return nil, err
	}
	if s.h, err = netlink.NewHandle(netlinkFamilies...); err != nil {
		lock.release()
		return nil, explain(err)
	}
	return s, nil
}

// Update changes over to another plan with the same devices, without a moment
// in which a route of both is missing. On error the new plan holds in part:
// updating to the old one mends that.
func (s *HostSetup) Update(p HostPlan) error {
	if p.TUN != s.plan.TUN || p.Uplink != s.plan.Uplink {
		return fmt.Errorf("update the host's set-up: it has the devices %q and %q, the new plan %q and %q; start anew for that", s.plan.TUN, s.plan.Uplink, p.TUN, p.Uplink)
	}
	if err := s.apply(p); err != nil {
		return fmt.Errorf("update the host's set-up: %w", err)
	}
	return nil
}

func (s *HostSetup) apply(p HostPlan) error {
	if err := s.saveSettings(p); err != nil {
		return err
	}
	for _, c := range p.Sysctls {
		if err := writeSetting(c.Key, c.Value); err != nil {
			return err
		}
	}
	if err := s.linkLocal(p); err != nil {
		return err
	}
	s.plan = p
	if _, err := syncHostRoutes(s.h, p.Routes); err != nil {
		return err
	}
	return s.syncRules()
}

func (s *HostSetup) syncRules() error {
	rules := s.plan.Rules
	if s.diverted {
		rules = append(rules[:len(rules):len(rules)], s.plan.Divert...)
	}
	_, err := syncHostRules(s.h, rules)
	return err
}

// saveSettings writes down the present values of what will be changed, but for
// the TUN's, which end with it. Of what has been changed already, here or before
// a crash, the first value counts.
func (s *HostSetup) saveSettings(p HostPlan) error {
	own := confKey(p.TUN, "")
	for _, c := range p.Sysctls {
		if p.TUN != "" && strings.HasPrefix(c.Key, own) {
			continue
		}
		i := slices.IndexFunc(s.state.Sysctls, func(v savedValue) bool { return v.Key == c.Key })
		if i >= 0 {
			s.state.Sysctls[i].Set = c.Value
			continue
		}
		former, err := readSetting(c.Key)
		if err != nil {
			return err
		}
		v := savedValue{c.Key, former, c.Value}
		if err := v.check(); err != nil {
			return err
		}
		s.state.Sysctls = append(s.state.Sysctls, v)
	}
	return s.lock.write(s.state)
}

// Divert leads programs' packets into the TUN, which must be read from now on.
func (s *HostSetup) Divert() error {
	s.diverted = true
	if err := s.syncRules(); err != nil {
		return fmt.Errorf("lead packets into %s: %w", s.plan.TUN, err)
	}
	return nil
}

// Undivert ends that: what programs send goes past the TUN. Connections go on.
func (s *HostSetup) Undivert() error {
	s.diverted = false
	if err := s.syncRules(); err != nil {
		return fmt.Errorf("lead packets past %s: %w", s.plan.TUN, err)
	}
	return nil
}

// Restore puts back what was before, all of it even if some fails, and lets go of
// the namespace. Settings that somebody else has changed since stay as they are.
// Another call does nothing.
func (s *HostSetup) Restore() error {
	if s.lock == nil {
		return nil
	}
	err := s.undo()
	s.close(err == nil)
	if err != nil {
		return fmt.Errorf("restore the host's set-up: %w; weft host --cleanup tries again", err)
	}
	return nil
}

// undo forgets the former values only when all are back.
func (s *HostSetup) undo() error {
	_, rules := syncHostRules(s.h, nil)
	_, routes := syncHostRoutes(s.h, nil)
	err := errors.Join(rules, routes)
	for _, v := range s.state.Sysctls {
		err = errors.Join(err, v.restore())
	}
	if a := s.state.LinkLocal; a != nil {
		err = errors.Join(err, a.remove(s.h))
	}
	if err != nil {
		return err
	}
	return s.lock.remove()
}

// close lets go of the namespace, for good: without leaving a directory.
func (s *HostSetup) close(forGood bool) {
	if forGood {
		removeHostDir(s.lock.dir)
	}
	s.h.Close()
	s.lock.release()
	s.lock = nil
}

func (v savedValue) restore() error {
	now, err := readSetting(v.Key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now != v.Set {
		return nil // the device is gone, or somebody else wants it otherwise
	}
	if err != nil {
		return err
	}
	return writeSetting(v.Key, v.Former)
}

func settingPath(key string) string {
	return "/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(key)
}

func readSetting(key string) (string, error) {
	b, err := os.ReadFile(settingPath(key))
	if err != nil {
		return "", explain(fmt.Errorf("sysctl %s: %w", key, err))
	}
	return strings.TrimSpace(string(b)), nil
}

func writeSetting(key, value string) error {
	now, err := readSetting(key)
	if err != nil || now == value {
		return err
	}
	err = os.WriteFile(settingPath(key), []byte(value), 0)
	if errors.Is(err, unix.EROFS) {
		return fmt.Errorf("sysctl %s=%s: /proc/sys is read-only here (a container, or ProtectKernelTunables=); set it from outside or let weft write it", key, value)
	}
	if err != nil {
		return explain(fmt.Errorf("sysctl %s=%s: %w", key, value, err))
	}
	return nil
}
