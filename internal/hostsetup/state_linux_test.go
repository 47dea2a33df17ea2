package hostsetup

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
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
			if _, err := Cleanup(); err == nil || !strings.Contains(err.Error(), "is not a setting that weft makes") {
				t.Errorf("error %v", err)
			}
			return nil
		})
	}
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
