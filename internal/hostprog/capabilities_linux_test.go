package hostprog

import (
	"errors"
	"runtime"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// The verifier refuses some things to who has not CAP_PERFMON, which the daemon has not: a program
// must load without it whatever the configuration, which is constants of one byte each.
func TestPrograms_loadWithoutPerfmon(t *testing.T) {
	for name, load := range map[string]func() (*ebpf.CollectionSpec, error){"spray": loadSpray, "order": loadOrder, "steer": loadSteer, "detour": loadDetour} {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		var flags []string
		for v, c := range spec.Variables {
			if c.Constant() && c.Size() == 1 {
				flags = append(flags, v)
			}
		}
		set := func(which func(string) bool) *ebpf.CollectionSpec {
			s := spec.Copy()
			for _, v := range flags {
				if which(v) {
					if err := s.Variables[v].Set(uint8(1)); err != nil {
						t.Fatal(err)
					}
				}
			}
			return s
		}
		loads := func(what string, s *ebpf.CollectionSpec) {
			t.Helper()
			err := withFewCapabilities(func() error {
				c, err := ebpf.NewCollection(s)
				if err == nil {
					c.Close()
				}
				return err
			})
			if errors.Is(err, errNotRoot) {
				t.Skip(err)
			}
			if err != nil {
				t.Errorf("%s with %s: %v", name, what, err)
			}
		}
		loads("nothing", set(func(string) bool { return false }))
		loads("everything", set(func(string) bool { return true }))
		for _, v := range flags {
			loads(v, set(func(w string) bool { return w == v }))
		}
	}
}

var errNotRoot = errors.New("needs root")

// withFewCapabilities calls f with the capabilities that weft host keeps.
func withFewCapabilities(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all [2]unix.CapUserData
	if err := unix.Capget(&header, &all[0]); err != nil {
		return err
	}
	if all[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0 {
		return errNotRoot
	}
	few := all
	few[0].Effective = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW
	few[1].Effective = 1 << (unix.CAP_BPF - 32)
	if err := unix.Capset(&header, &few[0]); err != nil {
		return err
	}
	return errors.Join(f(), unix.Capset(&header, &all[0]))
}
