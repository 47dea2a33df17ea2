package hostsetup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// Setup is a plan in force. Its methods are not safe for concurrent use. They
// must be called by threads in the network namespace of Apply, as are all threads
// of a process that does not change it: /proc/sys/net is the thread's.
type Setup struct {
	plan     Plan
	diverted bool
	h        *netlink.Handle
	lock     *Lock
	state    hostState
	kept     keptSettings
}

// Apply configures the network namespace of the calling thread as planned, except
// for the rules that lead into the TUN. It takes over what a crash has left
// there, and Restore puts back what was there before the crash. It needs
// CAP_NET_ADMIN, a writable /proc/sys/net, and the directory of Dir.
func Apply(p Plan) (*Setup, error) {
	if err := kernel.RequireCapability(unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"); err != nil {
		return nil, fmt.Errorf("set up the host: %w", err)
	}
	s, err := openHostSetup()
	if err != nil {
		return nil, err
	}
	if _, err := s.apply(p); err != nil {
		err = fmt.Errorf("set up the host: %w", err)
		if undo := s.Restore(); undo != nil {
			err = fmt.Errorf("%w (and undoing it: %w)", err, undo)
		}
		return nil, err
	}
	return s, nil
}

// openHostSetup locks the namespace and reads what a crash left.
func openHostSetup() (*Setup, error) {
	if err := kernel.CheckSysctlDir(); err != nil {
		return nil, err
	}
	lock, err := TakeLock()
	if err != nil {
		return nil, err
	}
	s := &Setup{lock: lock}
	if s.state, err = s.file().read(); err != nil {
		lock.Release()
		return nil, err
	}
	if s.h, err = netlink.NewHandle(kernel.Families...); err != nil {
		lock.Release()
		return nil, kernel.Explain(err)
	}
	return s, nil
}

// file is where the state is kept.
func (s *Setup) file() stateFile { return stateFile(filepath.Join(s.lock.dir, stateName)) }

// Update changes to another plan for the same TUN. Routes that both plans have are never
// missing. After an error the new plan holds in part: update to the old one to mend that.
func (s *Setup) Update(p Plan) error {
	if _, err := s.change(p); err != nil {
		return fmt.Errorf("update the host's set-up: %w", err)
	}
	return nil
}

// Repair compares the kernel with a plan, the present one or another for the same TUN, and
// mends what differs: settings, addresses, the TUN's state, routes and rules. It returns a
// sentence for each thing it has mended. After an error it goes on with the rest.
func (s *Setup) Repair(p Plan) (mended []string, err error) {
	if mended, err = s.change(p); err != nil {
		return mended, fmt.Errorf("repair the host's set-up: %w", err)
	}
	return mended, nil
}

// RepairSettings is Repair for the settings of the present plan alone. Call it often: the
// kernel does not tell when some of them change, and looking is cheap.
func (s *Setup) RepairSettings() (mended []string, err error) {
	if s.lock == nil {
		return nil, nil
	}
	return s.syncSettings()
}

func (s *Setup) change(p Plan) (mended []string, err error) {
	if s.lock == nil {
		return nil, errors.New("it has been restored")
	}
	if p.TUN != s.plan.TUN {
		return nil, fmt.Errorf("it has the TUN %q, the new plan %q; start anew for that", s.plan.TUN, p.TUN)
	}
	return s.apply(p)
}

// apply configures the kernel as planned. Each step compares first. After a step that fails
// the others are still done. The error is the first one, which may be why others failed.
func (s *Setup) apply(p Plan) (mended []string, err error) {
	if err := s.saveSettings(p); err != nil {
		return nil, err
	}
	s.plan = p
	for _, step := range []func() ([]string, error){s.syncSettings, s.syncDevices, s.syncRoutes, s.syncRules} {
		did, err2 := step()
		mended = append(mended, did...)
		if err == nil {
			err = err2
		}
	}
	return mended, err
}

func (s *Setup) syncSettings() (changed []string, err error) {
	s.kept.keep(s.plan.Sysctls)
	for _, c := range s.plan.Sysctls {
		was, err2 := s.kept.read(c.Key)
		if err2 == nil && was != c.Value {
			err2 = putSetting(c.Key, c.Value)
		}
		if err2 == nil && was != c.Value {
			changed = append(changed, fmt.Sprintf("setting %s was %s: set to %s", c.Key, was, c.Value))
		}
		err = errors.Join(err, err2)
	}
	return changed, err
}

func (s *Setup) syncRoutes() ([]string, error) { return syncHostRoutes(s.h, s.plan.Routes) }

func (s *Setup) syncRules() ([]string, error) {
	rules := s.plan.Rules
	if s.diverted {
		rules = append(rules[:len(rules):len(rules)], s.plan.Divert...)
	}
	return syncHostRules(s.h, rules)
}

// saveSettings writes down the present values of settings that will be changed, except for
// the TUN's, which end with it. For a setting that has been changed already, here or before
// a crash, the first value counts.
func (s *Setup) saveSettings(p Plan) error {
	own, own6 := confKey(p.TUN, ""), confKey6(p.TUN, "")
	news := false
	for _, c := range p.Sysctls {
		if p.TUN != "" && (strings.HasPrefix(c.Key, own) || strings.HasPrefix(c.Key, own6)) {
			continue
		}
		same := func(v savedValue) bool { return v.Key == c.Key }
		if slices.ContainsFunc(s.state.Unknown, same) {
			continue
		}
		i := slices.IndexFunc(s.state.Sysctls, same)
		if i >= 0 {
			news = news || s.state.Sysctls[i].Set != c.Value
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
		news = true
	}
	if !news && s.plan.Routes != nil { // it has been written
		return nil
	}
	return s.file().write(s.state)
}

// Divert leads programs' packets into the TUN. From now on the TUN must be read.
func (s *Setup) Divert() error {
	s.diverted = true
	if _, err := s.syncRules(); err != nil {
		return fmt.Errorf("lead packets into %s: %w", s.plan.TUN, err)
	}
	return nil
}

// Undivert ends that: programs' packets pass by the TUN. Connections go on.
func (s *Setup) Undivert() error {
	s.diverted = false
	if _, err := s.syncRules(); err != nil {
		return fmt.Errorf("lead packets past %s: %w", s.plan.TUN, err)
	}
	return nil
}

// Withdraw removes rules and routes, so that the host follows its own, and keeps the rest.
// Update or Repair brings them back. Programs' packets pass by the TUN until Divert.
func (s *Setup) Withdraw() error {
	s.diverted = false
	_, rules := syncHostRules(s.h, nil)
	_, routes := syncHostRoutes(s.h, nil)
	if err := errors.Join(rules, routes); err != nil {
		return fmt.Errorf("withdraw the host's set-up: %w", err)
	}
	return nil
}

// Restore puts everything back, also after an error, and closes the namespace. Settings
// that somebody else has changed since stay as they are. A second call does nothing.
func (s *Setup) Restore() error {
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
func (s *Setup) undo() error {
	_, rules := syncHostRules(s.h, nil)
	_, routes := syncHostRoutes(s.h, nil)
	err := errors.Join(rules, routes)
	for _, v := range s.state.Sysctls {
		err = errors.Join(err, v.restore(putSetting))
	}
	if a := s.state.LinkLocal; a != nil {
		err = errors.Join(err, a.remove(s.h))
	}
	if err != nil {
		return err
	}
	if len(s.state.Unknown) > 0 {
		s.state.Sysctls, s.state.LinkLocal = nil, nil
		return s.file().write(s.state)
	}
	return s.file().remove()
}

// Unknown names settings that a later version of weft has made before it crashed, and that this
// one does not know. They stay as they are, and written down, until that version runs again.
func (s *Setup) Unknown() []string { return s.state.unknownKeys() }

// close lets go of the namespace, for good: without leaving a directory.
func (s *Setup) close(forGood bool) {
	s.h.Close()
	s.kept.close()
	if forGood && len(s.state.Unknown) == 0 {
		s.lock.Remove(stateName, stateName+".new", StatusSocket)
	} else {
		s.lock.Release()
	}
	s.lock = nil
}

// restore puts a setting back with put, unless that changes nothing or somebody else has changed it.
func (v savedValue) restore(put func(key, value string) error) error {
	now, err := readSetting(v.Key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (now != v.Set || now == v.Former) {
		return nil
	}
	if err != nil {
		return err
	}
	return put(v.Key, v.Former)
}

func settingPath(key string) string {
	return filepath.Join(kernel.SysctlDir(), strings.NewReplacer(".", "/", "/", ".").Replace(key))
}

func readSetting(key string) (string, error) {
	b, err := os.ReadFile(settingPath(key))
	if err != nil {
		return "", kernel.Explain(fmt.Errorf("sysctl %s: %w", key, err))
	}
	return strings.TrimSpace(string(b)), nil
}

func putSetting(key, value string) error {
	err := os.WriteFile(settingPath(key), []byte(value), 0)
	if errors.Is(err, unix.EROFS) {
		return fmt.Errorf("sysctl %s=%s: %s is read-only here (a container, or ProtectKernelTunables=); mount the machine's /proc/sys/net elsewhere and name that directory's parent in %s", key, value, kernel.SysctlDir(), kernel.SysctlVariable)
	}
	if err != nil {
		return kernel.Explain(fmt.Errorf("sysctl %s=%s: %w", key, value, err))
	}
	return nil
}
