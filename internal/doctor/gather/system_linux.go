package gather

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// needed are the capabilities that some daemon starts with as root.
var needed = []struct {
	number int
	name   string
}{
	{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {unix.CAP_NET_RAW, "CAP_NET_RAW"}, {unix.CAP_BPF, "CAP_BPF"}, {unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
	{unix.CAP_SETUID, "CAP_SETUID"}, {unix.CAP_SETGID, "CAP_SETGID"}, {unix.CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE"}, {unix.CAP_PERFMON, "CAP_PERFMON"},
}

// system looks at the kernel and at what this process may do with it.
func (l *looker) system() {
	s := &l.f.System
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		s.Release = unix.ByteSliceToString(u.Release[:])
	}
	_, err := os.Stat("/sys/kernel/btf/vmlinux")
	s.BTF = err == nil
	if s.Root = os.Geteuid() == 0; s.Root {
		for _, c := range needed {
			if kernel.RequireCapability(c.number, c.name) != nil {
				s.Missing = append(s.Missing, c.name)
			}
		}
		if err := kernel.TryTC(); err != nil {
			s.BPF = err.Error()
		}
		if s.TCX, err = hasTCX(); err != nil && s.BPF == "" {
			s.BPF = err.Error()
		}
	} else {
		for _, check := range []string{"privileges", "kernel", "firewall", "programs", "foreign", "decapsulation", "queue"} {
			l.f.Unknown[check] = "it takes root"
		}
	}
	if f, err := os.OpenFile("/dev/net/tun", os.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		f.Close()
	} else if s.Root {
		s.TUN = err.Error()
	}
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r) == nil && r.Cur != unix.RLIM_INFINITY {
		s.Memlock = r.Cur
	}
	s.Conntrack, s.ConntrackMax = number("/proc/sys/net/netfilter/nf_conntrack_count"), number("/proc/sys/net/netfilter/nf_conntrack_max")
	l.f.Clock.Year = time.Now().Year()
	var t unix.Timex
	if state, err := unix.Adjtimex(&t); err == nil {
		l.f.Clock.Unsynced = state == unix.TIME_ERROR
	}
}

func hasTCX() (bool, error) {
	lo, err := netlink.LinkByIndex(1)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return kernel.HasTCX(lo)
}

// number is that in a file, 0 if there is none.
func number(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}
