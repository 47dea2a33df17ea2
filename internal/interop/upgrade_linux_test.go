package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"weft/internal/slowtest"
)

// formerCommit is a commit of before meshes, elephants, CONGA at the uplink, late cut and the
// shed order: its programs' maps, its datagrams and its state differ from today's.
const formerCommit = "07ea76e36f177f1a2b187b3886cbbaddabe0ef7f"

// former is weft of an earlier commit. It skips where the clone does not have that. The program stays
// in the user's cache, by the commit and by Go's version.
func former(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "-C", root, "cat-file", "-e", formerCommit+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("commit %s, to upgrade from, is not in this clone: %v %s", formerCommit, err, out)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	kept := filepath.Join(cache, "weft-tests", fmt.Sprintf("weft-%.12s-%s-%s", formerCommit, runtime.Version(), runtime.GOARCH))
	if _, err := os.Stat(kept); err != nil {
		buildFormer(t, root, kept)
	}
	text, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(binary(t)), "weft-former") // where another user may run it
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// buildFormer builds as the packages' tools do, so that they share what the go command has compiled.
func buildFormer(t *testing.T, root, to string) {
	t.Helper()
	dir := t.TempDir()
	archive := exec.Command("sh", "-c", `git -C "$0" archive "$1" | tar -x -C "$2"`, root, formerCommit, dir)
	if out, err := archive.CombinedOutput(); err != nil {
		t.Fatalf("git archive: %v\n%s", err, out)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	next := fmt.Sprintf("%s.%d", to, os.Getpid())
	build := exec.Command("go", "build", "-C", dir, "-buildvcs=false", "-trimpath", "-o", next, "./cmd/weft")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", formerCommit, err, out)
	}
	if err := os.Rename(next, to); err != nil {
		t.Fatal(err)
	}
}

// Daemons are replaced by a later version and by an earlier one while transfers go on, both
// ways. Versions that differ talk to each other, and understand or clear what the other has
// left.
func TestUpgrade_underTransfers(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t, "u", slowLinks)
	needs(t, "git", "tar", "tcpdump")
	old := former(t)
	for _, mode := range []string{"auto", "gateway"} {
		n.run(mode, nil, func(n *network) { n.replace(old, binary(t), "mode: "+mode+"\n") })
	}
}

// replace has every pair of versions, one daemon replaced at a time.
func (n *network) replace(old, now, config string) {
	before := map[string]string{hostA: n.configuration(hostA), hostB: n.configuration(hostB)}
	there, back := n.stream(hostA, hostB), n.stream(hostB, hostA)
	there.moves("before", enough)
	running := map[string]*daemon{hostA: n.weftOf(old, hostA, config), hostB: n.weftOf(old, hostB, config)}
	both := func(what string) {
		there.moves(what, enough)
		back.moves(what, enough)
		for _, node := range []string{hostA, hostB} {
			n.encapsulates(node, what)
		}
	}
	both("both of before")
	for _, step := range []struct {
		node, by, what string
		signal         syscall.Signal
	}{
		{hostA, now, "upgraded, towards one of before", syscall.SIGTERM},
		{hostB, now, "both upgraded", syscall.SIGTERM},
		{hostA, old, "downgraded, towards one of now", syscall.SIGTERM},
		{hostB, old, "both downgraded", syscall.SIGTERM},
		{hostA, now, "upgraded after a crash", syscall.SIGKILL},
		{hostA, old, "downgraded after a crash", syscall.SIGKILL},
	} {
		was := running[step.node]
		was.end(step.signal)
		// As the unit's ExecStopPost: an earlier version refuses state with settings that only a later
		// one makes, so what has crashed is cleared by its own version.
		n.must(step.node, was.cmd.Path, "host", "--cleanup")
		there.moves("until: "+step.what, enough/4)
		running[step.node] = n.weftOf(step.by, step.node, config)
		both(step.what)
	}
	for node, d := range running {
		d.end(syscall.SIGTERM)
		n.wantUnchanged(node, before[node])
	}
	there.end()
	back.end()
}

// weftOf is weft by a binary.
func (n *network) weftOf(binary, node, config string) *daemon {
	n.Helper()
	d := &daemon{node: node, file: n.file(node+".yaml", []byte(config))}
	n.Cleanup(func() { n.lab.Do(n.node(node).ID, exec.Command(binary, "host", "--cleanup").Run) })
	d.process = n.start(node, binary, "host", "--config", d.file)
	d.says("mode ")
	return d
}

// encapsulates waits until data leaves a host in outer headers, as its edge switch sees it. That
// holds for every version.
func (n *network) encapsulates(node, what string) {
	n.Helper()
	edge := strings.TrimSuffix("e"+strings.TrimPrefix(node, "h"), ".2")
	out := n.must(edge, "timeout", "60", "tcpdump", "-Z", "root", "-n", "-i", "any", "-c", "100", "-Q", "in", fmt.Sprintf("ip proto 4 and src host %s and greater 1000 and ip[29]=6", n.addr(node)))
	if strings.Count(out, "IP "+n.addr(node)) == 0 {
		n.Fatalf("%s: %s: tcpdump says: %s", node, what, out)
	}
}
