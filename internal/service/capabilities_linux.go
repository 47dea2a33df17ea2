package service

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Capabilities are numbers of capabilities(7) that a daemon keeps, such as
// unix.CAP_NET_ADMIN.
type Capabilities []uintptr

// Exceeded reports whether the process has more capabilities than these and can give up the
// rest, which only a process of root can.
func (c Capabilities) Exceeded() (bool, error) {
	if os.Geteuid() != 0 {
		return false, nil
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&hdr, &have[0]); err != nil {
		return false, fmt.Errorf("read the capabilities: %w", err)
	}
	want := c.data()
	return have[0].Permitted&^want[0].Permitted != 0 || have[1].Permitted&^want[1].Permitted != 0, nil
}

func (c Capabilities) data() (data [2]unix.CapUserData) {
	for _, n := range c {
		data[n/32].Permitted |= 1 << (n % 32)
	}
	for i := range data {
		data[i].Effective, data[i].Inheritable = data[i].Permitted, data[i].Permitted
	}
	return data
}

// bound bounds what a later program could get to these.
func (c Capabilities) bound() error {
	want := c.data()
	for n := uintptr(0); ; n++ {
		if n < 64 && want[n/32].Permitted&(1<<(n%32)) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, n, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // the kernel's last one was before
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// keep gives the calling thread these and no others, and makes them ambient: they
// outlive the beginning anew.
func (c Capabilities) keep() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := c.data()
	if err := unix.Capset(&hdr, &data[0]); err != nil {
		return err
	}
	for _, n := range c {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, n, 0, 0); err != nil {
			return err
		}
	}
	return nil
}
