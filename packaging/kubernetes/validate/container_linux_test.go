package validate

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weft/lab"
	"weft/topology"
)

const fabric = "leaf-spine:leaves=2,spines=2,hosts=2"

// cluster is a lab whose hosts are nodes.
type cluster struct {
	image image
	lab   *lab.Lab
}

// newCluster skips where it cannot be.
func newCluster(t *testing.T) cluster {
	t.Helper()
	if v := os.Getenv("WEFT_TESTS"); v != "all" && v != "long" {
		t.Skip("builds weft and runs it in containers: WEFT_TESTS=all runs it")
	}
	if _, err := exec.LookPath("runc"); err != nil {
		t.Skipf("needs an OCI runtime: %v", err)
	}
	if err := lab.CanBuild(); err != nil {
		t.Skipf("builds a lab of network namespaces: %v", err)
	}
	top, err := topology.Parse(fabric)
	if err != nil {
		t.Fatal(err)
	}
	c := cluster{image: theImage(t)}
	c.lab, err = lab.Hold(context.Background(), lab.Config{Name: fmt.Sprintf("k8s%d", os.Getpid()), Topology: top, RateMbit: 200})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.lab.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// node makes a node of one of the lab's hosts, with the deployment's configuration in this fabric.
func (c cluster) node(t *testing.T, name string, components ...string) *node {
	t.Helper()
	d := deployed(t, components...)
	const example = "topology: fat-tree:k=4"
	yaml := d.config.Data["host.yaml"]
	if !strings.Contains(yaml, example) {
		t.Fatalf("host.yaml has another topology\n%s", yaml)
	}
	return newNode(t, c.image, c.lab, name, d, strings.Replace(yaml, example, "topology: "+fabric, 1))
}

// The image runs at two nodes with what the manifest gives it and nothing else: it sprays, answers
// its probes, ends in time and leaves nothing.
func TestContainer_sprays(t *testing.T) {
	c := newCluster(t)
	if got, want := c.image.files(t), []string{"/etc/group", "/etc/passwd", "/usr/local/bin/weft"}; !slices.Equal(got, want) {
		t.Errorf("the image has %v, want %v", got, want)
	}
	nodes := []*node{c.node(t, "h0.0.2"), c.node(t, "h0.1.2")}
	var before []string
	var running []*container
	for _, n := range nodes {
		before = append(before, n.footprint())
		if said := n.initialize(); !strings.Contains(said, "nothing was left") {
			t.Errorf("clean-up: %s", said)
		}
		running = append(running, n.start(n.main(), nil))
	}
	for i, r := range running {
		r.await(nodes[i].main().StartupProbe)
		r.await(nodes[i].main().LivenessProbe)
		r.await(nodes[i].main().ReadinessProbe)
	}
	if s := running[0].privileges(); s != "CAP_NET_ADMIN CAP_NET_RAW CAP_BPF, user 0, no new privileges, seccomp filter" {
		t.Errorf("it has %s", s)
	}
	checkSprayed(t, nodes, running[0])
	for _, argv := range guideExecs(t) {
		if out, err := running[0].exec(argv...); err != nil {
			t.Errorf("%v: %v\n%s", argv, err, out)
		}
	}

	for i, r := range running {
		begin := time.Now()
		if err := r.signal("TERM"); err != nil {
			t.Error(err)
		}
		if code := r.ended(); code != 0 {
			t.Errorf("status %d\n%s", code, &r.said)
		}
		t.Logf("ended after %v of %d s", time.Since(begin).Round(time.Millisecond), *nodes[i].pod.TerminationGracePeriodSeconds)
		if after := nodes[i].footprint(); after != before[i] {
			t.Errorf("before\n%s\nafter\n%s", before[i], after)
		}
	}
}

// checkSprayed transfers 30 MB from the first node to the second, and compares what came, and by
// which ways.
func checkSprayed(t *testing.T, nodes []*node, r *container) {
	t.Helper()
	was := r.ways()
	payload := make([]byte, 30<<20)
	rand.Read(payload)
	to, err := net.ResolveTCPAddr("tcp", "10.0.1.2:7000") // h0.1.2
	if err != nil {
		t.Fatal(err)
	}
	var l net.Listener
	if err := nodes[1].lab.Do(nodes[1].id, func() (err error) { l, err = net.Listen("tcp", to.String()); return err }); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sum := make(chan [sha256.Size]byte, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		got, _ := io.ReadAll(conn)
		sum <- sha256.Sum256(got)
	}()
	var conn net.Conn
	if err := nodes[0].lab.Do(nodes[0].id, func() (err error) { conn, err = net.DialTimeout("tcp", to.String(), patience); return err }); err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(patience))
	_, err = io.Copy(conn, bytes.NewReader(payload))
	conn.Close()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-sum:
		if got != sha256.Sum256(payload) {
			t.Error("what arrives is not what was sent")
		}
	case <-time.After(patience):
		t.Fatal("nothing arrives")
	}
	ways := r.ways()
	total := uint64(0)
	for via := range ways {
		ways[via] -= was[via]
		total += ways[via]
	}
	if len(ways) != 2 || total < uint64(len(payload)) {
		t.Errorf("%d bytes by %v, want %d by two spines", total, ways, len(payload))
	}
	for via, n := range ways {
		share := float64(n) / float64(total)
		t.Logf("by %s: %.1f %%", via, 100*share)
		if share < 0.4 || share > 0.6 { // flowcells of 64 KB in turn
			t.Errorf("%s has %.3f of the bytes", via, share)
		}
	}
}

// ways are the bytes that the program at the uplink has sent by each spine.
func (c *container) ways() map[string]uint64 {
	c.n.t.Helper()
	out, err := c.exec("weft", "status", "--json")
	var s struct {
		Offload struct {
			Bounces []struct {
				Address string
				Bytes   uint64
			}
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &s)
	}
	if err != nil {
		c.n.t.Fatalf("%v\n%s", err, out)
	}
	all := make(map[string]uint64)
	for _, b := range s.Offload.Bounces {
		all[b.Address] = b.Bytes
	}
	return all
}

// privileges are those of the container's first process, in words.
func (c *container) privileges() string {
	c.n.t.Helper()
	out, err := exec.Command("runc", "state", c.id).Output()
	var s struct{ Pid int }
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		c.n.t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid))
	if err != nil {
		c.n.t.Fatal(err)
	}
	field := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `:\t(\S+)`).FindSubmatch(text)
		if m == nil {
			return ""
		}
		return string(m[1])
	}
	var bits uint64
	fmt.Sscanf(field("CapPrm"), "%x", &bits)
	var caps []string
	for n, name := range map[int]string{12: "CAP_NET_ADMIN", 13: "CAP_NET_RAW", 39: "CAP_BPF"} {
		if bits&(1<<n) != 0 {
			caps, bits = append(caps, name), bits&^(1<<n)
		}
	}
	slices.SortFunc(caps, func(a, b string) int {
		return slices.Index([]string{"CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_BPF"}, a) - slices.Index([]string{"CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_BPF"}, b)
	})
	if bits != 0 || field("CapBnd") != field("CapPrm") || field("CapEff") != field("CapPrm") {
		caps = append(caps, fmt.Sprintf("and more: permitted %s, bounding %s, effective %s", field("CapPrm"), field("CapBnd"), field("CapEff")))
	}
	said := strings.Join(caps, " ") + ", user " + field("Uid")
	if field("NoNewPrivs") == "1" {
		said += ", no new privileges"
	}
	if field("Seccomp") == "2" {
		said += ", seccomp filter"
	}
	return said
}

// A daemon that is killed is started again in its pod and sprays. What the killed one has left and
// may not be removed without CAP_SYS_ADMIN is gone when the next pod begins.
func TestContainer_killed(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "h0.0.2")
	before := n.footprint()
	for range 2 {
		r := n.start(n.main(), nil)
		r.await(n.main().StartupProbe)
		if err := r.signal("KILL"); err != nil {
			t.Fatal(err)
		}
		if code := r.ended(); code == 0 {
			t.Errorf("killed, and it ended with 0\n%s", &r.said)
		}
	}
	again := n.start(n.main(), nil)
	again.await(n.main().StartupProbe)
	if err := again.signal("TERM"); err != nil {
		t.Fatal(err)
	}
	if code := again.ended(); code != 0 {
		t.Errorf("status %d\n%s", code, &again.said)
	}
	// Two programs at ingress and one at egress for each that was killed, and nothing else.
	if left, want := diff(before, n.footprint()), "programs TCXIngress 4\nprograms TCXEgress 2\n"; left != want {
		t.Errorf("left in the pod:\n%swant\n%s", left, want)
	}
	if said := n.initialize(); !strings.Contains(said, " programs") {
		t.Errorf("the next pod's clean-up: %s", said)
	}
	if after := n.footprint(); after != before {
		t.Errorf("left after the next pod's clean-up:\n%s", diff(before, after))
	}
}

// programs is the part of a footprint that counts programs.
func programs(footprint string) string {
	var lines []string
	for line := range strings.Lines(footprint) {
		if strings.HasPrefix(line, "programs ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// diff is the lines of b that a does not have.
func diff(a, b string) string {
	var lines []string
	for line := range strings.Lines(b) {
		if !strings.Contains(a, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// Each capability of the manifest is needed: without it the container fails, or leaves what it is
// to remove. docs/kubernetes.md has this table.
func TestContainer_needsEachCapability(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "h0.0.2")
	without := func(capability corev1.Capability) func(*corev1.Container) {
		return func(c *corev1.Container) {
			c.SecurityContext.Capabilities.Add = slices.DeleteFunc(c.SecurityContext.Capabilities.Add, func(a corev1.Capability) bool { return a == capability })
		}
	}
	clean := n.footprint()
	said := map[corev1.Capability]string{"NET_ADMIN": "CAP_NET_ADMIN", "NET_RAW": "no CAP_NET_RAW", "BPF": "memory limit for eBPF"}
	for _, capability := range n.main().SecurityContext.Capabilities.Add {
		r := n.start(n.main(), without(capability))
		code := r.ended()
		if code == 0 || said[capability] == "" || !strings.Contains(r.said.String(), said[capability]) {
			t.Errorf("the daemon without %s: status %d\n%s", capability, code, &r.said)
		}
		n.initialize()
		if after := n.footprint(); after != clean {
			t.Errorf("without %s it leaves\n%s", capability, diff(clean, after))
		}
	}
	cleanup := n.pod.InitContainers[0]
	for _, capability := range cleanup.SecurityContext.Capabilities.Add {
		r := n.start(n.main(), nil)
		r.await(n.main().StartupProbe)
		if err := r.signal("KILL"); err != nil {
			t.Fatal(err)
		}
		r.ended()
		if err := exec.Command("chown", "-R", "65532:65532", n.volumes["run"]+"/").Run(); err != nil { // a daemon of another user's
			t.Fatal(err)
		}
		if err := os.Chown(n.volumes["run"], 0, 0); err != nil {
			t.Fatal(err)
		}
		tried := n.start(cleanup, without(capability))
		code := tried.ended()
		after := n.footprint()
		if after == clean {
			t.Errorf("the clean-up without %s: status %d, and nothing is left\n%s", capability, code, &tried.said)
		}
		t.Logf("the clean-up without %s: status %d, %sleft:\n%s", capability, code, &tried.said, diff(clean, after))
		n.initialize()
		if after := n.footprint(); after != clean {
			t.Errorf("the clean-up leaves\n%s", diff(clean, after))
		}
	}
}

// With the component, the daemon becomes a user of its own, and ends with the same three
// capabilities.
func TestContainer_ownUser(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "h0.0.2", "own-user")
	before := n.footprint()
	n.initialize()
	killed := n.start(n.main(), nil)
	killed.await(n.main().StartupProbe)
	once := programs(n.footprint())
	if err := killed.signal("KILL"); err != nil {
		t.Fatal(err)
	}
	killed.ended()
	r := n.start(n.main(), nil)
	r.await(n.main().StartupProbe)
	if now := programs(n.footprint()); now != once {
		t.Errorf("started again after a kill, it has\n%swhich was\n%s", now, once)
	}
	if s := r.privileges(); s != "CAP_NET_ADMIN CAP_NET_RAW CAP_BPF, user 65532, no new privileges, seccomp filter" {
		t.Errorf("it has %s", s)
	}
	if err := r.signal("TERM"); err != nil {
		t.Fatal(err)
	}
	if code := r.ended(); code != 0 {
		t.Errorf("status %d\n%s", code, &r.said)
	}
	n.initialize()
	if after := n.footprint(); after != before {
		t.Errorf("left:\n%s", diff(before, after))
	}
}
