package apps

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"weft/lab"
	"weft/topology"
)

// congestionControl is what all programs' connections use, as in weft's other benchmarks. Programs
// do not ask for one, so it is the namespaces' default.
const congestionControl = "cubic"

// sysctls is where the kernel's settings are, of the calling thread's namespace.
const sysctls = "/proc/sys/net/ipv4/"

// setHosts sets in each host's namespace what its programs use. Nothing is to be remembered of
// former connections, which another row had.
func setHosts(l *lab.Lab, hosts []topology.Node) (err error) {
	undo, err := allow(congestionControl)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	for _, h := range hosts {
		err := l.Do(h.ID, func() error {
			return errors.Join(set("tcp_congestion_control", congestionControl), set("tcp_no_metrics_save", "1"))
		})
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	return nil
}

// allow lets namespaces have a congestion control as their default. The kernel refuses one that
// this machine does not allow to all users; so it is allowed until undo.
func allow(name string) (undo func() error, err error) {
	const setting = "tcp_allowed_congestion_control"
	b, err := os.ReadFile(sysctls + setting)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", setting, err)
	}
	former := strings.Fields(string(b))
	if slices.Contains(former, name) {
		return func() error { return nil }, nil
	}
	if err := set(setting, strings.Join(append(former, name), " ")); err != nil {
		return nil, fmt.Errorf("%w: load it (modprobe tcp_%s)", err, name)
	}
	return func() error { return set(setting, strings.Join(former, " ")) }, nil
}

func set(name, value string) error {
	if err := os.WriteFile(sysctls+name, []byte(value), 0o644); err != nil {
		return fmt.Errorf("set %s to %s: %w", name, value, err)
	}
	return nil
}
