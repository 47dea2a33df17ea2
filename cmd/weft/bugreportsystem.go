package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"weft/internal/bugreport"
)

// systemCommands are what other programs say, by the name of the part. Lines that one finds
// not installed, or that it refuses, are that part's error.
var systemCommands = []struct{ name, line string }{
	{"system/uname.txt", "uname -a"},
	{"system/dmesg.txt", "dmesg"},
	{"system/log.txt", "journalctl --no-pager -o short-iso -n 5000 -u weft-host -u weft-switch"},
	{"network/address.txt", "ip -d address"},
	{"network/link.txt", "ip -s -d link"},
	{"network/route.txt", "ip route show table all"},
	{"network/route6.txt", "ip -6 route show table all"},
	{"network/rule.txt", "ip rule"},
	{"network/rule6.txt", "ip -6 rule"},
	{"network/neighbour.txt", "ip neighbour"},
	{"network/namespaces.txt", "ip netns list"},
	{"network/nft.txt", "nft list ruleset"},
	{"network/iptables.txt", "iptables-save"},
	{"network/ip6tables.txt", "ip6tables-save"},
	{"network/qdisc.txt", "tc -s -d qdisc"},
	{"network/sockets.txt", "ss -s"},
	{"bpf/net.txt", "bpftool net"},
	{"bpf/programs.txt", "bpftool prog list"},
	{"bpf/maps.txt", "bpftool map list"},
	{"bpf/links.txt", "bpftool link list"},
}

// systemFiles are files of the kernel and of the system.
var systemFiles = []string{"/etc/os-release", "/proc/version", "/proc/uptime", "/proc/loadavg", "/proc/meminfo", "/proc/modules",
	"/proc/net/snmp", "/proc/net/netstat", "/proc/net/snmp6", "/proc/net/dev", "/proc/net/softnet_stat", "/proc/self/cgroup", "/proc/self/status"}

// sysctls are patterns of the settings that matter to weft, below /proc/sys.
var sysctls = []string{"net/ipv4/ip_forward", "net/ipv4/conf/*/rp_filter", "net/ipv4/conf/*/accept_local", "net/ipv4/conf/*/forwarding", "net/ipv4/tcp_*",
	"net/ipv4/fib_multipath_*", "net/ipv4/ip_no_pmtu_disc", "net/ipv4/icmp_*", "net/ipv4/ip_local_port_range", "net/ipv6/conf/*/forwarding",
	"net/ipv6/conf/*/disable_ipv6", "net/ipv6/conf/*/seg6_enabled", "net/ipv6/fib_multipath_*", "net/core/*", "net/mpls/*", "net/mpls/conf/*/input",
	"kernel/osrelease", "kernel/unprivileged_bpf_disabled", "net/core/bpf_jit_*", "fs/file-max", "fs/file-nr", "vm/overcommit_memory"}

// secretSettings are settings of those patterns that nobody else may know.
var secretSettings = regexp.MustCompile(`key|secret`)

// maxDevices bounds how many devices are asked one by one.
const maxDevices = 32

// systemParts are what weft does not know itself.
func systemParts() (list []reportPart) {
	for _, c := range systemCommands {
		list = append(list, reportPart{c.name, programs([]string{c.line})})
	}
	devices := devices()
	var offloads, filters []string
	for _, d := range devices {
		offloads = append(offloads, "ethtool -i "+d, "ethtool -k "+d)
		filters = append(filters, "tc -s filter show dev "+d+" ingress", "tc -s filter show dev "+d+" egress", "tc -s filter show dev "+d)
	}
	return append(list,
		reportPart{"network/offloads.txt", programs(offloads)},
		reportPart{"bpf/filters.txt", programs(filters)},
		reportPart{"system/files.txt", func(context.Context) ([]byte, error) { return readAll(systemFiles) }},
		reportPart{"system/sysctl.txt", func(context.Context) ([]byte, error) { return settings() }},
		reportPart{"system/environment.txt", func(context.Context) ([]byte, error) { return environment(os.Environ()), nil }})
}

// devices are the network's, but those of labs: a machine may have thousands.
func devices() (list []string) {
	all, _ := filepath.Glob("/sys/class/net/*")
	for _, path := range all {
		if i, err := os.Stat(path); err == nil && i.IsDir() && len(list) < maxDevices {
			list = append(list, filepath.Base(path))
		}
	}
	return list
}

// programs is what command lines print, one after the other.
func programs(lines []string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, partTime)
		defer cancel()
		var out bytes.Buffer
		var failed error
		for i, line := range lines {
			if out.Len() >= bugreport.MaxPart {
				return out.Bytes(), errors.Join(failed, fmt.Errorf("%d of %d commands were not run, as the others say more than fits", len(lines)-i, len(lines)))
			}
			fmt.Fprintf(&out, "$ %s\n", line)
			words := strings.Fields(line)
			c := exec.CommandContext(ctx, words[0], words[1:]...)
			c.WaitDelay = time.Second
			text := &limited{most: bugreport.MaxPart - 1<<14}
			c.Stdout, c.Stderr = text, text
			c.Env = append(os.Environ(), "LC_ALL=C")
			err := c.Run()
			text.write(&out)
			switch {
			case errors.Is(err, exec.ErrNotFound):
				return out.Bytes(), errors.Join(failed, fmt.Errorf("%s is not installed", words[0]))
			case err != nil:
				failed = errors.Join(failed, fmt.Errorf("%s: %w", line, err))
			}
		}
		return out.Bytes(), failed
	}
}

// limited keeps the end of what is written to it: the newest messages of a log.
type limited struct {
	most int
	text []byte
	lost int
}

func (l *limited) Write(p []byte) (int, error) {
	l.text = append(l.text, p...)
	if n := len(l.text) - l.most; n > l.most/4 {
		l.lost += n
		l.text = append(l.text[:0], l.text[n:]...)
	}
	return len(p), nil
}

// write adds what was kept.
func (l *limited) write(out *bytes.Buffer) {
	if n := len(l.text) - l.most; n > 0 {
		l.lost += n
		l.text = l.text[n:]
	}
	if l.lost > 0 {
		fmt.Fprintf(out, "-- cut here: the first %d bytes are left out\n", l.lost)
	}
	out.Write(l.text)
}

// readAll is the text of files, one after the other.
func readAll(files []string) ([]byte, error) {
	var out bytes.Buffer
	var failed error
	for _, f := range files {
		text, err := os.ReadFile(f)
		failed = errors.Join(failed, err)
		fmt.Fprintf(&out, "== %s\n%s", f, text)
	}
	return out.Bytes(), failed
}

// settings are the sysctls that matter.
func settings() ([]byte, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("%s has no /proc/sys", runtime.GOOS)
	}
	var out bytes.Buffer
	for _, pattern := range sysctls {
		files, err := filepath.Glob("/proc/sys/" + pattern)
		if err != nil {
			return out.Bytes(), err
		}
		for _, f := range files {
			if i, err := os.Stat(f); err != nil || i.IsDir() || secretSettings.MatchString(f) {
				continue
			}
			text, err := os.ReadFile(f)
			if err != nil {
				continue // to be written alone, or by root
			}
			fmt.Fprintf(&out, "%s = %s\n", strings.ReplaceAll(strings.TrimPrefix(f, "/proc/sys/"), "/", "."), strings.TrimSpace(string(text)))
		}
	}
	return out.Bytes(), nil
}

// openVariables are those of the environment that may matter to weft and are no secret. All that
// begin with WEFT are, too.
var openVariables = []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOTRACEBACK", "PATH", "LANG", "LC_ALL", "NOTIFY_SOCKET", "INVOCATION_ID", "container"}

// environment lists what of the environment may matter. Others' variables are nobody's business.
func environment(all []string) []byte {
	var out bytes.Buffer
	for _, v := range all {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "WEFT") || slices.Contains(openVariables, name) {
			fmt.Fprintln(&out, v)
		}
	}
	return out.Bytes()
}
