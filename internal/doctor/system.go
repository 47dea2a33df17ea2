package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// leastKernel is what weft's programs need, {major, minor}: docs/operating.md.
var leastKernel = [2]int{5, 15}

// release returns major and minor of a kernel's release, such as 6.1.0-13-amd64.
func release(text string) (v [2]int, ok bool) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) < 2 {
		return v, false
	}
	minor, _, _ := strings.Cut(parts[1], "-")
	for i, p := range []string{parts[0], minor} {
		n, err := strconv.Atoi(p)
		if err != nil {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

func older(a, b [2]int) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

func askKernel(f *Facts) (all []Finding, well string) {
	s := &f.System
	v, ok := release(s.Release)
	if ok && older(v, leastKernel) {
		all = append(all, wrong(stops, fmt.Sprintf("the kernel is Linux %s, and weft's programs need %d.%d", s.Release, leastKernel[0], leastKernel[1]),
			"boot a newer kernel, or embed package stack in the program, which needs none"))
	}
	if s.BPF != "" {
		w := stops
		if f.Daemon.Answers { // it was started with more than doctor
			w = slows
		}
		all = append(all, wrong(w, "the kernel does not take eBPF programs: "+s.BPF,
			"a kernel with the options BPF_SYSCALL and NET_CLS_BPF is needed; in a container, also the capabilities CAP_BPF and CAP_NET_ADMIN"))
	}
	if s.TUN != "" && f.Config != nil && f.Config.Gateway {
		all = append(all, wrong(stops, "/dev/net/tun cannot be opened: "+s.TUN,
			"modprobe tun; in a container: --device /dev/net/tun"))
	}
	well = "Linux " + s.Release
	if s.TCX {
		well += ", TCX"
	} else {
		well += ", clsact (no TCX: Linux 6.6)"
	}
	if s.BTF {
		well += ", BTF"
	} else if f.Config != nil && f.Config.Congestion == ownDCTCP {
		all = append(all, wrong(stops, "congestion_control is weft_dctcp, and the kernel does not describe its types (no /sys/kernel/btf/vmlinux)",
			"boot a kernel with the option DEBUG_INFO_BTF, or name another congestion_control"))
	}
	return all, well
}

// ownDCTCP is the congestion control that weft brings.
const ownDCTCP = "weft_dctcp"

// capabilities are those that the daemon starts with (docs/operating.md), and those without which
// it works, but not fully.
func (f *Facts) capabilities() (must, may []string) {
	c := f.Config
	if c == nil {
		c = &Config{}
	}
	must = []string{"CAP_NET_ADMIN", "CAP_NET_RAW"}
	if c.Becomes && !f.keepsUser() {
		must = append(must, "CAP_SETUID", "CAP_SETGID")
	}
	if f.Role == RoleSwitch {
		module := slices.ContainsFunc(f.Devices, func(d Device) bool { return d.Decap == "ipip" })
		if c.Configures && !module {
			must = append(must, "CAP_BPF", "CAP_SYS_ADMIN")
		}
		return must, nil
	}
	must = append(must, "CAP_BPF")
	may = []string{"CAP_SYS_ADMIN"} // to find what a crash has left
	if c.Congestion == ownDCTCP {
		must, may = append(must, "CAP_PERFMON", "CAP_SYS_ADMIN"), nil
	} else if c.QCN {
		may = append(may, "CAP_PERFMON")
	}
	return must, may
}

// keepsUser reports whether root has no more than the capabilities that a daemon keeps, as in a
// container that is given them alone. Then the daemon becomes no other user.
func (f *Facts) keepsUser() bool {
	for _, more := range []string{"CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_PERFMON"} {
		if !slices.Contains(f.System.Missing, more) {
			return false
		}
	}
	return true
}

func askPrivileges(f *Facts) (all []Finding, well string) {
	lacks := func(names []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(f.System.Missing, name) }), ", ")
	}
	const fix = "give the container these capabilities (docker: --cap-add), or start weft outside of it"
	must, may := f.capabilities()
	if m := lacks(must); m != "" {
		w := stops
		if f.Daemon.Answers { // it was started with more
			w = slows
		}
		all = append(all, wrong(w, "root lacks the capabilities "+m+" here, as in a container", fix))
	}
	if m := lacks(may); m != "" {
		all = append(all, wrong(slows, "root lacks the capabilities "+m+" here, as in a container: weft works, but cannot clear away what a crash has left, nor slow connections for qcn", fix))
	}
	return all, "root has the capabilities that the daemon starts with"
}

// memcg is since when the kernel counts eBPF memory by control groups and not by
// RLIMIT_MEMLOCK.
var memcg = [2]int{5, 11}

const sysResource = "CAP_SYS_RESOURCE"

// leastMemlock is room for the tables of a host with all flows, in bytes.
const leastMemlock = 64 << 20

func askMemlock(f *Facts) (all []Finding, well string) {
	s := &f.System
	v, ok := release(s.Release)
	limited := s.Memlock > 0 && s.Memlock < leastMemlock
	for _, m := range s.Missing {
		if m == sysResource && limited && ok && older(v, memcg) {
			all = append(all, wrong(stops, fmt.Sprintf("locked memory is limited to %d KB, and this kernel counts eBPF tables as that", s.Memlock>>10),
				"LimitMEMLOCK=infinity in the unit; in a container: --ulimit memlock=-1"))
		}
	}
	if ok && !older(v, memcg) {
		return all, "the kernel counts eBPF tables by control groups"
	}
	return all, "room for eBPF tables"
}

// fullTable is the share of the connection tracking's table above which packets are about to be
// dropped.
const fullTable = 0.95

func askConntrack(f *Facts) (all []Finding, well string) {
	s := &f.System
	if s.ConntrackMax == 0 {
		return nil, "no connection tracking"
	}
	if float64(s.Conntrack) >= fullTable*float64(s.ConntrackMax) {
		all = append(all, wrong(explains, fmt.Sprintf("the table of tracked connections is full: %d of %d; the kernel drops packets of new ones", s.Conntrack, s.ConntrackMax),
			fmt.Sprintf("sysctl -w net.netfilter.nf_conntrack_max=%d, or exempt the fabric: nft add rule ... notrack", 4*s.ConntrackMax)))
	}
	return all, fmt.Sprintf("%d of %d tracked connections", s.Conntrack, s.ConntrackMax)
}

// built is before any weft was.
const built = 2025

func askClock(f *Facts) (all []Finding, well string) {
	if f.Clock.Year != 0 && f.Clock.Year < built {
		all = append(all, wrong(explains, fmt.Sprintf("the clock says that it is %d", f.Clock.Year), "set it: timedatectl set-ntp true, or chronyd"))
	}
	if f.Config != nil && f.Clock.Unsynced && len(all) == 0 {
		for _, k := range f.Config.Keys {
			if k.From > 0 {
				return append(all, wrong(slows, "keys change at a time (from:), and nothing keeps this machine's clock right", "timedatectl set-ntp true, or chronyd")), ""
			}
		}
	}
	return all, "plausible"
}
