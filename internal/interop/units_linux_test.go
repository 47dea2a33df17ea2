package interop

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/slowtest"
)

// The units of weft switch and weft scheduler, by the package, in a Debian that is a switch of
// the fabric. They start, also late, reload, are watched by systemd, and stop. What the sandbox of
// a unit could forbid is in their configurations: files beside these, keys of weft's user, a listener
// on IPv6. TestPackage_bareDebian has the unit of weft host.
func TestUnits_switchAndScheduler(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t, "u", slowLinks)
	root := debianRoot(t)
	file := pack(t, filepath.Join(root, "packages"), "0.1", binary(t))
	node := n.switches()[0]
	n.shell(node, "sysctl -qw net.ipv6.conf.lo.disable_ipv6=0")
	m := n.boot(node, root)
	m.must("dpkg -i /packages/" + file)
	m.must(`cd /etc/weft; weft keygen --out key
		sed -i 's/^topology:.*/topology: fabric.yaml/' switch.yaml
		printf "keys: [{id: 1, key_file: key}]\nmetrics: {listen: '[::1]:9469'}\n" >>switch.yaml
		printf 'keys: [{id: 1, key_file: key}]\n' >>scheduler.yaml
		systemctl enable --now --no-block weft-switch`)
	n.eventually("weft-switch is tried more often than systemd's limit has it", func() bool {
		var restarts int
		_, err := fmt.Sscan(m.must("systemctl show -p NRestarts --value weft-switch"), &restarts)
		return err == nil && restarts > 6
	})
	m.must(`cd /etc/weft; printf 'kind: fat-tree\nk: 4\n' >fabric.yaml`)
	if out, err := m.try("cd /etc/weft; weft switch --check"); err == nil || !strings.Contains(out, "weft, whom the daemon becomes, cannot read it: ") {
		t.Errorf("a key that is root's alone: %v, %s", err, out)
	}
	m.must("cd /etc/weft; chown weft key; weft switch --check; weft scheduler --check")
	m.must("for i in $(seq 150); do ! systemctl -q is-active weft-switch || exit 0; sleep 0.2; done; journalctl --no-pager -o cat -n 20 -t weft; exit 1")
	m.must("systemctl enable --now weft-scheduler")

	units := []string{"weft-switch", "weft-scheduler"}
	reloaded := func() int { return strings.Count(m.must("journalctl --no-pager -o cat -t weft"), "reloaded: 1 keys") }
	restarts := make(map[string]string)
	for _, unit := range units {
		before := reloaded()
		m.must("systemctl reload " + unit)
		n.eventually(unit+" reloads", func() bool { return reloaded() > before })
		restarts[unit] = m.must("systemctl show -p NRestarts --value " + unit)
	}
	if out := m.must("weft switch status; weft scheduler status"); !strings.Contains(out, node) {
		t.Error(out)
	}
	for _, unit := range units {
		if out := m.must("systemctl is-active " + unit + "; systemctl show -p NRestarts --value " + unit); out != "active\n"+restarts[unit] {
			t.Errorf("%s: restarts and state: %s", unit, out)
		}
		m.must("systemctl stop " + unit)
		if out := m.must("systemctl show -p Result --value " + unit); out != "success\n" {
			t.Errorf("%s ended with %s", unit, out)
		}
	}
	m.end()
}
