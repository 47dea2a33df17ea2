package gather

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of linux/ethtool.h, which x/sys lacks, by the names that ethtool -K has for what they
// ask for.
var features = map[string]uint32{"gro": 0x2b, "gso": 0x23, "tso": 0x1e, "tx": 0x16, "rx": 0x14, "sg": 0x18}

// offloads asks a device of the calling thread's network namespace for its offloads.
func offloads(device string) map[string]bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	all := make(map[string]bool)
	for name, command := range features {
		value := struct{ command, data uint32 }{command: command}
		var request struct {
			name [unix.IFNAMSIZ]byte
			data unsafe.Pointer
			_    [16]byte
		}
		copy(request.name[:unix.IFNAMSIZ-1], device)
		request.data = unsafe.Pointer(&value)
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno == 0 {
			all[name] = value.data != 0
		}
	}
	return all
}
