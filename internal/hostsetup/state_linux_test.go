package hostsetup

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The state is a user's file, and root reads it.
func TestHostState_isNotTrusted(t *testing.T) {
	ns := hostNamespace(t, "state")
	s := applyHost(t, ns, strictGateway(t))
	s.die()
	write := func(change func(*hostState)) {
		t.Helper()
		in(t, ns, func() error {
			state := s.state
			state.Sysctls = []savedValue{s.state.Sysctls[0]}
			change(&state)
			b, err := json.Marshal(state)
			if err != nil {
				return err
			}
			dir, err := Dir()
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "state.json"), b, 0o600)
		})
	}
	for _, change := range []func(*hostState){
		func(h *hostState) { h.Sysctls[0].Key = "kernel.core_pattern" },
		func(h *hostState) { h.Sysctls[0].Key = "net.ipv4.conf.////.rp_filter" },
		func(h *hostState) { h.Sysctls[0].Key = "net.ipv4.conf.p0.route_localnet" },
		func(h *hostState) { h.Sysctls[0].Former = "|/bin/sh" },
		func(h *hostState) { h.Sysctls[0].Former = "7" },
		func(h *hostState) { h.Sysctls[0].Key = "net.ipv6.conf.p0.forwarding" },
	} {
		write(change)
		in(t, ns, func() error {
			removed, err := Cleanup()
			if err != nil || len(removed) == 0 || !strings.HasPrefix(removed[len(removed)-1], "left to the version of weft that made it: ") {
				t.Errorf("%q, error %v", removed, err)
			}
			return nil
		})
		if now := configuration(t, ns); !strings.Contains(now, "p0.rp_filter = 2") {
			t.Error("the setting was put back")
		}
	}
	write(func(h *hostState) {
		for len(h.Sysctls) < 100 {
			h.Sysctls = append(h.Sysctls, savedValue{"kernel.core_pattern", "1", "2"})
		}
	})
	in(t, ns, func() error {
		if _, err := Cleanup(); err == nil || !strings.Contains(err.Error(), "more than 64 settings") {
			t.Errorf("error %v", err)
		}
		return nil
	})
	for _, a := range []addedAddress{{"p0", netip.MustParseAddr("fe80::1")}, {"p0", netip.MustParseAddr("10.0.0.2")},
		{"../p0", netip.MustParseAddr("fe80::7765:6674:a00:2")}, {}} {
		write(func(h *hostState) { h.LinkLocal = &a })
		in(t, ns, func() error {
			if _, err := Cleanup(); err == nil || !strings.Contains(err.Error(), "remove the file") {
				t.Errorf("%+v: error %v", a, err)
			}
			return nil
		})
	}
	// That of a namespace that is no more, whose number this one has now.
	write(func(h *hostState) { h.Netns++; h.Sysctls[0].Former = "0" })
	in(t, ns, func() error {
		_, err := Cleanup()
		return err
	})
	if now := configuration(t, ns); !strings.Contains(now, "p0.rp_filter = 2") {
		t.Error("another namespace's value was put back")
	}
}

// A version that comes behind a later one, which has crashed, runs, puts back what it knows, and
// leaves the rest to the later version.
func TestHostState_ofALaterVersion(t *testing.T) {
	ns := hostNamespace(t, "later")
	before := configuration(t, ns)
	plan := strictGateway(t)
	s := applyHost(t, ns, plan)
	later := []savedValue{{"net.ipv4.tcp_of_tomorrow", "9", "10"}, {"net.ipv4.conf.p0.rp_filter", "7", "2"}}
	rest := s.state.Sysctls[1:]
	if s.state.Sysctls[0].Key != later[1].Key {
		t.Fatalf("the first setting is %v", s.state.Sysctls[0])
	}
	s.state.Sysctls = append(later[:2:2], rest...)
	if err := s.file().write(s.state); err != nil {
		t.Fatal(err)
	}
	s.die()
	kept := func(s *Setup) {
		t.Helper()
		if got := s.Unknown(); !slices.Equal(got, []string{`"net.ipv4.tcp_of_tomorrow"`, `"net.ipv4.conf.p0.rp_filter"`}) {
			t.Errorf("left to the later version: %q", got)
		}
	}
	for range 2 {
		s = applyHost(t, ns, plan)
		kept(s)
		in(t, ns, s.Restore)
	}
	differ(t, "what the later version has set", strings.Replace(before, "p0.rp_filter = 1", "p0.rp_filter = 2", 1), configuration(t, ns))
	in(t, ns, func() error {
		s, err := openHostSetup()
		if err != nil {
			return err
		}
		defer s.close(false)
		kept(s)
		if len(s.state.Sysctls) > 0 {
			t.Errorf("still to be put back: %v", s.state.Sysctls)
		}
		return nil
	})
}
