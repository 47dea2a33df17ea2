package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"weft/internal/slowtest"
)

// pack makes a package of a binary with a version. The manual is of today's commands.
func pack(t *testing.T, dir, version, of string) string {
	t.Helper()
	cmd := exec.Command("go", "run", "-C", filepath.Join("..", "..", "packaging", "build"), ".", "--formats", "deb", "--compression", "gzip", "--out", dir, "--version", version, "--binary", of, "--describe", binary(t))
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1790000000")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return filepath.Base(lines[len(lines)-1])
}

// A package in a Debian that has never heard of weft: installed, configured, started, upgraded
// and downgraded under transfers, removed, purged. systemd runs there, and runs the units as
// they are.
func TestPackage_bareDebian(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t, "p", slowLinks)
	needs(t, "tcpdump", "git")
	root, old := debianRoot(t), former(t)
	packages := filepath.Join(root, "packages")
	first, second := pack(t, packages, "0.1", old), pack(t, packages, "0.2", binary(t))

	m := n.boot(hostA, root)
	files := m.files()
	network, programs := n.configuration(hostA), n.tcx(hostA) // once Debian has set its own settings
	there, back := n.stream(hostA, hostB), n.stream(hostB, hostA)
	n.weftOf(binary(t), hostB, "mode: auto\n")
	moves := func(what string) {
		t.Helper()
		there.moves(what, enough)
		back.moves(what, enough)
	}
	sprays := func(what string) (pid string) {
		t.Helper()
		moves(what)
		n.encapsulates(hostA, what)
		return strings.TrimSpace(m.must("systemctl show -p MainPID --value weft-host"))
	}

	const install = "apt install /tmp/packages/weft_*.deb"
	g := m.guide()
	g.seen("go run -C packaging/build . --out /tmp/packages") // pack
	g.seen("$EDITOR /etc/weft/host.yaml")
	g.install(first, install)
	g.run("weft version")
	if out, _ := m.try("systemctl is-enabled weft-host weft-switch weft-scheduler || true; systemctl is-active weft-host weft-switch weft-scheduler || true"); strings.Count(out, "disabled") != 3 || strings.Count(out, "inactive") != 3 {
		t.Errorf("installed, and not configured: %s", out)
	}
	if out := m.must("systemd-analyze verify /usr/lib/systemd/system/weft-*.service 2>&1"); strings.Contains(out, "weft") {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	m.must("getent passwd weft; echo '# by the operator' >>/etc/weft/host.yaml")
	g.run("weft host --check")
	g.run("systemctl enable --now weft-host")
	was := sprays("0.1 sprays")
	if user := m.must("stat -c %U /proc/" + was); user != "weft\n" {
		t.Errorf("the daemon runs as %s", user)
	}
	for _, step := range []struct{ file, version string }{{second, "0.2"}, {first, "0.1"}, {second, "0.2"}} {
		if out := g.install(step.file, install); strings.Contains(out, "weft: ") {
			t.Errorf("%s", out)
		}
		pid := sprays(step.version + " takes over")
		if pid == was || pid == "0" {
			t.Errorf("%s is installed, but the daemon is still process %s", step.version, pid)
		}
		was = pid
		if installed := m.must("dpkg-query -W -f '${Version}' weft; tail -n 1 /etc/weft/host.yaml"); installed != step.version+"# by the operator\n" {
			t.Errorf("installed: %s, want %s and the operator's file", installed, step.version)
		}
	}
	if out := g.run("weft status"); !strings.Contains(out, "SPRAYED") && !strings.Contains(out, "DEGRADED") {
		t.Error(out)
	}

	// The unit tells the daemon, which is another user's by now, to read its file again.
	reloads := func() (count int) {
		if _, err := fmt.Sscan(m.must("weft status --json | sed -n 's/.*\"reloads\": *\\([0-9]*\\).*/\\1/p'"), &count); err != nil {
			t.Fatal(err)
		}
		return count
	}
	taken := reloads()
	m.must("chown weft /var/lib/weft") // as a mesh's key has it
	m.must("echo 'policy: rrb' >>/etc/weft/host.yaml; systemctl reload weft-host")
	n.eventually("weft-host reloads", func() bool { return reloads() == taken+1 })
	m.must("sed -i '$d' /etc/weft/host.yaml")
	if owner := m.must("stat -c '%U %a' /var/lib/weft"); owner != "weft 700\n" {
		t.Errorf("after a reload the state is %s", owner)
	}

	// A version that refuses the configuration lets the other one go on.
	m.must("sed -i 's/^topology:.*/topology: fat-tree:k=5/' /etc/weft/host.yaml")
	if out := g.install(first, install); !strings.Contains(out, "weft-host goes on in its former version") {
		t.Error(out)
	}
	if pid := sprays("0.2 goes on"); pid != was {
		t.Errorf("process %s, and it was %s", pid, was)
	}
	m.must("sed -i 's/^topology:.*/topology: fat-tree:k=4/' /etc/weft/host.yaml")
	g.install(second, install)
	sprays("0.2 again")

	// What others hold stays: a daemon of a container has the lock, a switch its socket. What a crash has
	// left goes.
	m.must(`mkdir /run/weft/host-1 /run/weft/switch-1 /run/weft/switch-2
		systemd-run --unit=holder flock /run/weft/host-1/lock sleep infinity
		systemd-run --unit=listener systemd-socket-activate -l /run/weft/switch-1/status.sock cat
		until ! flock -n /run/weft/host-1/lock true && [ -S /run/weft/switch-1/status.sock ]; do sleep 0.1; done`)
	g.run("apt remove weft")
	moves("removed")
	if out := m.must("cd /run/weft; echo *; systemctl stop holder listener"); out != "host-1 switch-1\n" {
		t.Errorf("of /run/weft is left: %s", out)
	}
	n.wantUnchanged(hostA, network)
	if now := n.tcx(hostA); now != programs {
		t.Errorf("%d programs at devices, before there were %d", now, programs)
	}
	if out := m.must("cat /etc/weft/host.yaml; ls /usr/bin/weft 2>&1 || true"); !strings.Contains(out, "# by the operator") || !strings.Contains(out, "No such file") {
		t.Errorf("removed, and not purged: %s", out)
	}
	g.run("apt purge weft")
	if out := m.must("ls /run/weft 2>&1 || true"); !strings.Contains(out, "No such file") {
		t.Errorf("purged, and there is %s", out)
	}
	m.left(files)
	if out, _ := m.try("find /etc/systemd/system /var/lib/systemd /sys/fs/bpf -name '*weft*'; systemctl list-units --all --no-legend 'weft*'"); out != "" {
		t.Errorf("left behind: %s", out)
	}
	moves("purged")

	// What has been copied by hand makes room for the package, and the configuration is kept.
	unit, err := os.ReadFile("../../packaging/weft-host.service")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(packages, "weft-host.service"), unit, 0o644); err != nil {
		t.Fatal(err)
	}
	m.must(`dpkg-deb --fsys-tarfile /packages/` + second + ` | tar -xO ./usr/bin/weft >/usr/local/bin/weft
		chmod 755 /usr/local/bin/weft; mkdir -p /etc/weft; printf 'topology: fat-tree:k=4\n# by hand\n' >/etc/weft/host.yaml
		cp /packages/weft-host.service /etc/systemd/system; useradd --system weft; systemctl daemon-reload; systemctl enable --now weft-host`)
	sprays("by hand")
	out := g.install(second, "apt install -o Dpkg::Options::=--force-confold /tmp/packages/weft_*.deb")
	for _, want := range []string{"/etc/systemd/system/weft-host.service starts /usr/local/bin/weft", "shells find /usr/local/bin/weft"} {
		if !strings.Contains(out, want) {
			t.Errorf("no word of %s: %s", want, out)
		}
	}
	for _, line := range []string{"rm /usr/local/bin/weft /etc/systemd/system/weft-*.service", "systemctl daemon-reload", "systemctl reenable weft-host", "systemctl restart weft-host"} {
		g.run(line)
	}
	if last := m.must("[ /proc/" + sprays("the package's") + "/exe -ef /usr/bin/weft ]; tail -n 1 /etc/weft/host.yaml"); last != "# by hand\n" {
		t.Errorf("after a copy by hand the configuration ends in %q", last)
	}
	g.run("apt purge weft")
	m.left(files)
	g.all()
	there.end()
	back.end()
	m.end()
}

// end ends systemd, and all that runs in the machine.
func (m *machine) end() {
	m.init.cmd.Process.Signal(syscall.SIGKILL)
	<-m.init.exited
}

// tcx counts the programs at the devices of a host.
func (n *network) tcx(node string) (count int) {
	n.Helper()
	n.do(node, func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		for _, l := range links {
			for _, at := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
				r, err := link.QueryPrograms(link.QueryOptions{Target: l.Attrs().Index, Attach: at})
				if err != nil {
					return err
				}
				count += len(r.Programs)
			}
		}
		return nil
	})
	return count
}
