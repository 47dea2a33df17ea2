package wire

import (
	"bytes"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// losses reads from sysfs how often devices have lost their carrier. The kernel counts at
// the moment of the loss. Its message about the loss (rtnetlink) comes from a worker that
// first needs the kernel's network lock (RTNL). A program that changes many routes or
// devices holds that lock for tens of milliseconds.
//
// If a machine does not have that file, or its /sys is another namespace's, losses does
// nothing.
type losses struct {
	files []int // by port; -1: none
	buf   [32]byte
}

func newLosses(ports int) *losses {
	l := &losses{files: make([]int, ports)}
	for i := range l.files {
		l.files[i] = -1
	}
	return l
}

// follow makes a device a port's.
func (l *losses) follow(port int, device link) {
	l.forget(port)
	dir, err := openSysfs(device)
	if err != nil {
		return
	}
	defer unix.Close(dir)
	if fd, err := unix.Openat(dir, "carrier_down_count", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		l.files[port] = fd
	}
}

func (l *losses) forget(port int) {
	if fd := l.files[port]; fd >= 0 {
		unix.Close(fd)
		l.files[port] = -1
	}
}

// read returns a port's count; false if it cannot be known. It takes no lock of
// the kernel's, and about a microsecond.
func (l *losses) read(port int) (uint32, bool) {
	if l.files[port] < 0 {
		return 0, false
	}
	n, err := unix.Pread(l.files[port], l.buf[:], 0)
	if err != nil { // the device is gone, of which the monitor hears
		return 0, false
	}
	count, err := strconv.ParseUint(string(bytes.TrimSpace(l.buf[:n])), 10, 32)
	return uint32(count), err == nil
}

func (l *losses) close() {
	for port := range l.files {
		l.forget(port)
	}
}

const classNet = "class/net/"

// openSysfs opens a device's directory. It uses /sys if that is of the device's network
// namespace. Otherwise it mounts an instance of sysfs for the calling thread's namespace,
// which takes CAP_SYS_ADMIN.
func openSysfs(device link) (dir int, err error) {
	if dir, err = openDevice(unix.AT_FDCWD, "/sys/"+classNet, device); err == nil {
		return dir, nil
	}
	fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	root, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	return openDevice(root, classNet, device)
}

// openDevice opens a device's directory below another. Namespaces often have
// devices of the same name and index: the hardware address must be the same, too.
func openDevice(at int, parent string, device link) (dir int, err error) {
	if dir, err = unix.Openat(at, parent+device.name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return -1, err
	}
	index, address := readAttribute(dir, "ifindex"), readAttribute(dir, "address")
	if index != strconv.Itoa(device.index) || address != net.HardwareAddr(device.address).String() {
		unix.Close(dir)
		return -1, fmt.Errorf("%s: is a device of another network namespace", device.name)
	}
	return dir, nil
}

// readAttribute returns what a file of sysfs says, "" if that cannot be known.
func readAttribute(dir int, name string) string {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var b [128]byte
	n, _ := unix.Read(fd, b[:])
	return string(bytes.TrimSpace(b[:max(n, 0)]))
}
