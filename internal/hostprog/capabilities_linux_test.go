package hostprog

import (
	"runtime"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weft/internal/kernel/kerneltest"
)

// The verifier refuses some things to who has not CAP_PERFMON, which the daemon has not: a program
// must load without it whatever the configuration, which is constants of one byte each.
func TestPrograms_loadWithoutPerfmon(t *testing.T) {
	kerneltest.NeedRoot(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
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
			err := kerneltest.WithCapabilities(func() error {
				c, err := ebpf.NewCollection(s)
				if err == nil {
					c.Close()
				}
				return err
			}, unix.CAP_NET_ADMIN, unix.CAP_BPF)
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
