package validate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"

	"weft/lab"
	"weft/topology"
)

// patience is for what must happen, however slow the machine is.
const patience = 2 * time.Minute

// node is a host of a lab in the part of a Kubernetes node.
type node struct {
	t       *testing.T
	image   image
	lab     *lab.Lab
	id      topology.NodeID
	volumes map[string]string
	pod     corev1.PodSpec
}

// newNode makes the files that a kubelet has for the pod's volumes. Those of the machine are the
// machine's, but for /run/weft.
func newNode(t *testing.T, i image, l *lab.Lab, name string, d deployment, hostYAML string) *node {
	t.Helper()
	at, err := l.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, image: i, lab: l, id: at.ID, pod: pod(d), volumes: make(map[string]string)}
	for _, v := range n.pod.Volumes {
		dir := filepath.Join(t.TempDir(), v.Name)
		switch {
		case v.HostPath != nil && *v.HostPath.Type != corev1.HostPathDirectoryOrCreate:
			if _, err := os.Stat(v.HostPath.Path); err != nil {
				t.Skip(err)
			}
			n.volumes[v.Name] = v.HostPath.Path
			continue
		case v.HostPath != nil:
			err = os.Mkdir(dir, 0o755)
		case v.Projected != nil:
			err = n.project(dir, v.Projected, hostYAML)
		default:
			t.Fatalf("volume %s", v.Name)
		}
		if err != nil {
			t.Fatal(err)
		}
		n.volumes[v.Name] = dir
	}
	return n
}

// project writes a configuration as a kubelet does: by links to a folder that it can exchange.
func (n *node) project(dir string, p *corev1.ProjectedVolumeSource, hostYAML string) error {
	mode, owner := os.FileMode(*p.DefaultMode), 0
	if g := n.pod.SecurityContext.FSGroup; g != nil {
		mode, owner = mode|mode>>3&0o040, int(*g)
	}
	err := os.MkdirAll(filepath.Join(dir, "..2027"), 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "..2027", "host.yaml"), []byte(hostYAML), mode)
	}
	return errors.Join(err, os.Chown(filepath.Join(dir, "..2027", "host.yaml"), 0, owner),
		os.Symlink("..2027", filepath.Join(dir, "..data")), os.Symlink("..data/host.yaml", filepath.Join(dir, "host.yaml")))
}

// container is one that runs.
type container struct {
	n    *node
	id   string
	run  *exec.Cmd
	said bytes.Buffer
	done chan struct{} // closed when run has ended
}

var containers atomic.Int64

// start starts a container of the pod. edit changes what its manifest says, nil for nothing.
func (n *node) start(c corev1.Container, edit func(*corev1.Container)) *container {
	n.t.Helper()
	if edit != nil {
		c = *c.DeepCopy()
		edit(&c)
	}
	spec, err := runtimeSpec(n.image, n.pod, c, n.volumes, filepath.Join("/run/netns", n.lab.Namespace(n.id)))
	if err != nil {
		n.t.Fatal(err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		n.t.Fatal(err)
	}
	bundle := n.t.TempDir()
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o644); err != nil {
		n.t.Fatal(err)
	}
	r := &container{n: n, id: fmt.Sprintf("weft-test-%d-%d", os.Getpid(), containers.Add(1)), done: make(chan struct{})}
	r.run = exec.Command("runc", "run", "--bundle", bundle, r.id)
	r.run.Stdout, r.run.Stderr = &r.said, &r.said
	r.run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.run.Start(); err != nil {
		n.t.Fatal(err)
	}
	go func() {
		r.run.Wait()
		close(r.done)
	}()
	n.t.Cleanup(func() {
		select {
		case <-r.done:
		default:
			r.signal("KILL")
			<-r.done
		}
		exec.Command("runc", "delete", "--force", r.id).Run()
	})
	return r
}

// ended waits for the end of a container, and returns its exit status.
func (c *container) ended() int {
	c.n.t.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		c.n.t.Fatalf("%s does not end", c.id)
	}
	return c.run.ProcessState.ExitCode()
}

// signal sends one to the container's first process, if that is there.
func (c *container) signal(name string) error {
	out, err := exec.Command("runc", "kill", c.id, name).CombinedOutput()
	if err != nil {
		return fmt.Errorf("runc kill %s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}

// exec runs a command in the container, as a probe does.
func (c *container) exec(argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "runc", append([]string{"exec", c.id}, argv...)...).CombinedOutput()
	return string(out), err
}

// await waits until a probe of the manifest succeeds.
func (c *container) await(probe *corev1.Probe) {
	c.n.t.Helper()
	var said string
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		select {
		case <-c.done:
			c.n.t.Fatalf("it has ended with %d:\n%s", c.run.ProcessState.ExitCode(), &c.said)
		default:
		}
		if said, err = c.exec(probe.Exec.Command...); err == nil {
			return
		}
	}
	c.n.t.Fatalf("%v: %v\n%s", probe.Exec.Command, err, said)
}

// main is the pod's container of the daemon.
func (n *node) main() corev1.Container { return n.pod.Containers[0] }

// initialize runs the pod's init containers to their ends.
func (n *node) initialize() (said string) {
	n.t.Helper()
	for _, c := range n.pod.InitContainers {
		r := n.start(c, nil)
		if code := r.ended(); code != 0 {
			n.t.Fatalf("%s: status %d\n%s", c.Name, code, &r.said)
		}
		said += r.said.String()
	}
	return said
}

// footprint is all of the node that weft changes.
func (n *node) footprint() (all string) {
	n.t.Helper()
	var b strings.Builder
	err := n.lab.Do(n.id, func() error {
		rules, err := netlink.RuleList(netlink.FAMILY_ALL)
		if err != nil {
			return err
		}
		for _, r := range rules {
			fmt.Fprintln(&b, "rule", r.Priority, r.String())
		}
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: 0}, netlink.RT_FILTER_TABLE)
		if err != nil {
			return err
		}
		for _, r := range routes {
			if r.Dst == nil || !r.Dst.IP.IsMulticast() {
				fmt.Fprintln(&b, "route", r.Table, r.String())
			}
		}
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		for _, l := range links {
			a := l.Attrs()
			fmt.Fprintln(&b, "link", a.Name, a.GSOMaxSegs, a.GSOIPv4MaxSize, a.GROIPv4MaxSize, a.GSOMaxSize, a.GROMaxSize)
			for _, hook := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
				r, err := link.QueryPrograms(link.QueryOptions{Target: a.Index, Attach: hook})
				if err != nil {
					return err
				}
				fmt.Fprintln(&b, "programs", hook, len(r.Programs))
			}
		}
		for _, key := range []string{"ipv4/tcp_min_rtt_wlen", "ipv4/tcp_tso_rtt_log", "ipv4/conf/all/rp_filter", "ipv6/conf/all/forwarding"} {
			text, err := os.ReadFile("/proc/sys/net/" + key)
			fmt.Fprintln(&b, key, strings.TrimSpace(string(text)), err)
		}
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
	left, err := os.ReadDir(n.volumes["run"])
	fmt.Fprintln(&b, "state", left, err)
	return b.String()
}
