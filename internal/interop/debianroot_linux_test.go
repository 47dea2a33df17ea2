package interop

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// debianRoot unpacks a minimal Debian with systemd, and nothing of weft. debootstrap makes it
// once; its archive stays in the user's cache.
func debianRoot(t *testing.T) string {
	t.Helper()
	needs(t, "debootstrap", "tar", "unshare", "nsenter", "mount")
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	archive := filepath.Join(cache, "weft-tests", "debian-bookworm-"+runtime.GOARCH+".tar")
	dir := t.TempDir()
	if _, err := os.Stat(archive); err != nil {
		if out, err := exec.Command("debootstrap", "--variant=minbase", "--include=systemd", "bookworm", dir).CombinedOutput(); err != nil {
			t.Skipf("debootstrap: %v (is Debian's mirror reached?)\n%s", err, out)
		}
		if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
			t.Fatal(err)
		}
		next := fmt.Sprintf("%s.%d", archive, os.Getpid())
		if out, err := exec.Command("tar", "-C", dir, "--exclude=./var/cache/apt/archives/*.deb", "--exclude=./dev/*", "-cf", next, ".").CombinedOutput(); err != nil {
			t.Fatalf("tar: %v\n%s", err, out)
		}
		if err := os.Rename(next, archive); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if out, err := exec.Command("tar", "-C", dir, "--exclude=./dev/*", "-xf", archive).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	return dir
}

// cgroup2 is where the unified hierarchy of control groups is mounted, which systemd needs.
func cgroup2(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var s unix.Statfs_t
		if unix.Statfs(dir, &s) == nil && s.Type == unix.CGROUP2_SUPER_MAGIC && unix.Access(dir, unix.W_OK) == nil {
			return dir
		}
	}
	t.Skip("systemd needs control groups, version 2, of which no hierarchy is mounted")
	return ""
}

// toBoot makes a root what systemd takes for a container, and becomes it. $1 is the root, $2
// its control group. All users may open the TUN driver's device, as udev has it.
const toBoot = `set -e
mount --make-rprivate /
mount --bind "$1" "$1"; cd "$1"
mount -t proc proc proc; mount -t sysfs sysfs sys; mount -t cgroup2 cgroup2 sys/fs/cgroup; mount -t bpf bpf sys/fs/bpf
mount -t tmpfs tmpfs run; mount -t tmpfs tmpfs tmp; mount -t tmpfs tmpfs dev -o mode=755
for d in null zero full random urandom tty; do : >dev/$d; mount --bind /dev/$d dev/$d; done
mkdir -p dev/net dev/shm dev/pts packages; mknod -m 666 dev/net/tun c 10 200; ln -s pts/ptmx dev/ptmx
exec env -i container=weft-test PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /lib/systemd/systemd --unit=multi-user.target --log-target=console --show-status=no
`

// machine is a Debian that runs in a host of the lab: its network is the host's.
type machine struct {
	n    *network
	node string
	root string
	init *process
}

// boot starts systemd in a root, in namespaces of its own but for the network.
func (n *network) boot(node, root string) *machine {
	n.Helper()
	group := filepath.Join(cgroup2(n.T), fmt.Sprintf("weft-test-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { // when nobody is in there any more
		n.eventually("control groups go", func() bool { return removeGroups(group) == nil })
	})
	cmd := exec.Command("sh", "-ec", `echo 0 >"$2/cgroup.procs"; exec unshare --cgroup sh -c "$0" sh "$1" "$2"`, toBoot, root, group)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC}
	m := &machine{n, node, root, n.startCmd(node, cmd)}
	n.eventually("systemd runs", func() bool {
		out, _ := m.try("systemctl is-system-running")
		select {
		case <-m.init.exited:
			n.Fatalf("systemd has ended (%v): %s", m.init.err, m.init.messages())
		default:
		}
		return strings.Contains(out, "running") || strings.Contains(out, "degraded")
	})
	return m
}

func removeGroups(dir string) error {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != dir {
			defer os.Remove(path)
			removeGroups(path)
		}
		return nil
	})
	return os.Remove(dir)
}

// try runs a script of the shell in the machine.
func (m *machine) try(script string) (string, error) {
	pid := fmt.Sprint(m.init.cmd.Process.Pid)
	cmd := exec.Command("nsenter", "--target", pid, "--mount", "--pid", "--net", "--cgroup", "--uts", "--ipc", "--root", "env", "--chdir=/", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "sh", "-ec", script)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m *machine) must(script string) string {
	m.n.Helper()
	out, err := m.try(script)
	if err != nil {
		log, _ := m.try("journalctl --no-pager -n 40 -u 'weft-*'")
		m.n.Fatalf("%s: %v\n%s\n%s", script, err, out, log)
	}
	return out
}

// files is all that is in the root, but for what logs and package managers keep, and the
// content of what names users.
func (m *machine) files() map[string]string {
	m.n.Helper()
	all := make(map[string]string)
	out := m.must(`find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /packages -o -path /var/log -o -path /var/cache -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/lib/systemd \) -prune -o -print`)
	for name := range strings.Lines(out) {
		name = strings.TrimSpace(name)
		if !strings.HasSuffix(name, "-") && name != "/etc/.pwd.lock" && name != "/etc/.updated" && name != "/var/.updated" { // what useradd saves and locks
			all[name] = ""
		}
	}
	for _, name := range []string{"/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"} {
		all[name] = m.must("cat " + name + " 2>/dev/null || true")
	}
	return all
}

// left tells what is in a root that was not there before, or the other way round.
func (m *machine) left(before map[string]string) {
	m.n.Helper()
	after := m.files()
	for name, content := range after {
		if was, ok := before[name]; !ok || was != content {
			m.n.Errorf("left behind, or changed: %s\n%s", name, content)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			m.n.Errorf("gone: %s", name)
		}
	}
}
