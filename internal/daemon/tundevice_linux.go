package daemon

import (
	"fmt"

	"golang.org/x/sys/unix"

	"weft/internal/service"
)

const tunDevice = "/dev/net/tun"

// shareTUN lets a user open the device of the TUN driver. Where no udev has set its mode to
// 0666, as in containers, it makes a node of its own for the process, in a mount namespace
// of its own that belongs to the calling thread. The driver asks for CAP_NET_ADMIN anyway.
func shareTUN(a service.Account) error {
	var st unix.Stat_t
	if a.UID == 0 || unix.Stat(tunDevice, &st) != nil || accessible(st, a) {
		return nil // where it is missing, opening it says so
	}
	err := unix.Unshare(unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, "")
	}
	if err == nil {
		err = unix.Mount("weft", "/dev/net", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "size=4k,mode=755")
	}
	if err == nil {
		err = unix.Mknod(tunDevice, unix.S_IFCHR|0o600, int(st.Rdev))
	}
	if err == nil {
		err = unix.Chmod(tunDevice, 0o666)
	}
	if err != nil {
		return fmt.Errorf("%s is not for user %s, and cannot be made so: %w; chmod 0666 %s, as udev does, or choose user: root", tunDevice, a.Name, err, tunDevice)
	}
	return nil
}

func accessible(st unix.Stat_t, a service.Account) bool {
	const readWrite = 6
	switch {
	case int(st.Uid) == a.UID:
		return st.Mode>>6&readWrite == readWrite
	case int(st.Gid) == a.GID:
		return st.Mode>>3&readWrite == readWrite
	}
	return st.Mode&readWrite == readWrite
}
