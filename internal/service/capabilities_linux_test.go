package service

import (
	"os"
	"os/user"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What RunAs does is tested with the daemons that begin by it.

func TestCapabilities_exceeded(t *testing.T) {
	var all Capabilities
	for n := uintptr(0); n < 64; n++ {
		all = append(all, n)
	}
	if more, err := all.Exceeded(); more || err != nil {
		t.Errorf("more than all there can be: %v, %v", more, err)
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&hdr, &have[0]); err != nil {
		t.Fatal(err)
	}
	const high = unix.CAP_BPF // of the second word
	if os.Geteuid() != 0 || have[high/32].Permitted&(1<<(high%32)) == 0 {
		t.Skip("needs root with CAP_BPF")
	}
	few := append(Capabilities(nil), all[:high]...)
	few = append(few, all[high+1:]...)
	if more, err := few.Exceeded(); !more || err != nil {
		t.Errorf("CAP_BPF is not noticed: %v, %v", more, err)
	}
}

func TestLookUp_byNameAndNumber(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	for _, name := range []string{me.Username, me.Uid} {
		if a, err := LookUp(name); err != nil || a.UID != os.Getuid() || a.GID != os.Getgid() {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if _, err := LookUp("weft-nobody-such"); err == nil || !strings.Contains(err.Error(), "create it, or name another") {
		t.Errorf("no such user: %v", err)
	}
}

// A service runs as a user of its own where there is one, and says so where not.
func TestLookUp_auto(t *testing.T) {
	want := "nobody"
	if _, err := user.Lookup(OwnUser); err == nil {
		want = OwnUser
	} else if _, err := user.Lookup("nobody"); err != nil {
		t.Skip(err)
	}
	if a, err := LookUp(AutoUser); err != nil || a.Name != want || a.UID == 0 {
		t.Errorf("%+v, %v; want %s", a, err, want)
	}
}
