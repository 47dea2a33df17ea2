package faults

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/internal/switchd"
	"weft/lab"
	"weft/topology"
	"weft/topoupdate"
)

// What the faults are about: the fabric, the host whose operator asks, and those that it
// talks with, in three other pods. The switches of real run weft switch, the others an agent
// of this process.
const (
	shape    = "fat-tree:k=4"
	Observer = "h0.0.2"
)

var (
	peers = []string{"h1.0.2", "h2.1.3", "h3.1.3"}
	real  = []string{"e0.0", "a0.2"}
)

// hello is how often neighbours say hello: rarer than by default, as one machine runs 20 switches.
const hello = 200 * time.Millisecond

// Options are what a Bed is made of.
type Options struct {
	Lab  string   // its name
	Argv []string // weft
	Env  []string
	Rate float64 // of links, Mbit/s
	Load float64 // part of the rate that a host sends
	// Within is how long the tools have to name a cause; 0: DefaultWithin.
	Within time.Duration
	Notes  io.Writer // is told what the doctor finds before anything is broken; nil: nobody
}

// spec is the topology, which all are told alike.
func (o Options) spec() string {
	return fmt.Sprintf("%s,host-rate=%g,fabric-rate=%[2]g,core-rate=%[2]g", shape, o.Rate)
}

// Bed is a lab with daemons and traffic.
type Bed struct {
	options  Options
	lab      *lab.Lab
	topology *topology.Topology
	dir      string
	daemons  map[string]*process // by node
	agents   map[string]*switchd.Agent
	traffic  *traffic
	known    map[string][]string // the doctor's checks that fail while nothing is wrong, by node
}

// NewBed builds it, and waits until all is well.
func NewBed(ctx context.Context, o Options) (b *Bed, err error) {
	if err := lab.CanBuild(); err != nil {
		return nil, err
	}
	top, err := topology.Parse(o.spec())
	if err != nil {
		return nil, err
	}
	o.Within = cmp.Or(o.Within, DefaultWithin)
	b = &Bed{options: o, topology: top, daemons: map[string]*process{}, agents: map[string]*switchd.Agent{}, known: map[string][]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
			b = nil
		}
	}()
	if b.lab, err = lab.Hold(ctx, lab.Config{Name: o.Lab, Topology: top}); err != nil {
		return b, err
	}
	// The lab is this Bed's now. If another Bed was killed, Hold has ended its daemons, as they
	// ran in its namespaces; its directory is still there.
	dir := filepath.Join(kernel.RunDir, o.Lab+"-faults")
	if err := fresh(dir); err != nil {
		return b, err
	}
	b.dir = dir
	for i := range 2 {
		if err := os.WriteFile(b.key(i), []byte(base64.StdEncoding.EncodeToString(secret(i))), 0o600); err != nil {
			return b, err
		}
	}
	for n := range top.Nodes() {
		if n.Layer != topology.LayerHost {
			if err := b.startAgent(n.Name, n.Name); err != nil {
				return b, err
			}
		}
	}
	for _, h := range append([]string{Observer}, peers...) {
		if err := b.startHost(h, ""); err != nil {
			return b, err
		}
	}
	if b.traffic, err = b.startTraffic(); err != nil {
		return b, err
	}
	return b, b.awaitHealthy(ctx, Observer, healing)
}

// fresh makes an empty directory in the place of what a Bed that was killed has left there.
func fresh(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

// secret is one of two keys, key its file.
func secret(i int) []byte { return []byte(strings.Repeat(string(rune('a'+i)), 32)) }

func (b *Bed) key(i int) string { return filepath.Join(b.dir, fmt.Sprintf("key%d", i)) }

func isReal(node string) bool { return node == real[0] || node == real[1] }

// startAgent runs the agent of a switch, which takes itself for another.
func (b *Bed) startAgent(node, as string) error {
	if isReal(node) {
		return b.start(node, "switch", fmt.Sprintf("topology: %s\nnode: %s\nconfigure: false\nhello: %v\nuser: root\nkeys:\n- {id: 1, key_file: %s}\n", b.options.spec(), as, hello, b.key(0)))
	}
	self, err := b.topology.Lookup(as)
	if err != nil {
		return err
	}
	keys := topoupdate.Keys{List: []topoupdate.Key{{ID: 1, Secret: secret(0)}}}
	return b.do(node, func() error {
		a, err := switchd.Start(switchd.Config{Topology: b.topology, Self: self.ID, Hello: hello, Routes: as == node, Keys: keys})
		b.agents[node] = a
		return err
	})
}

// config is that of a host's daemon, and more.
func (b *Bed) config(more string) string {
	c := fmt.Sprintf("topology: %s\nfailures:\n  keys:\n  - {id: 1, key_file: %s}\n", b.options.spec(), b.key(0))
	for _, key := range []string{"topology:", "failures:"} {
		if strings.Contains(more, key) {
			c = without(c, key)
		}
	}
	if !strings.Contains(more, "user:") {
		c += "user: root\n"
	}
	return c + strings.ReplaceAll(more, "OTHERKEY", b.key(1))
}

func (b *Bed) startHost(host, more string) error { return b.start(host, "host", b.config(more)) }

// process is a daemon.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

func (b *Bed) configFile(node string) string { return filepath.Join(b.dir, node+".yaml") }

// start runs a daemon at a node, in a process group of its own.
func (b *Bed) start(node, daemon, config string) error {
	if err := os.WriteFile(b.configFile(node), []byte(config), 0o644); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(b.dir, node+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	c := b.weft(context.Background(), daemon, "--config", b.configFile(node))
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.do(node, c.Start); err != nil {
		return err
	}
	p := &process{c, make(chan struct{})}
	go func() { _ = c.Wait(); close(p.ended) }()
	b.daemons[node] = p
	return nil
}

// stop ends a daemon or an agent, if it runs.
func (b *Bed) stop(node string) error {
	if a := b.agents[node]; a != nil {
		delete(b.agents, node)
		return a.Close()
	}
	p := b.daemons[node]
	if p == nil {
		return nil
	}
	delete(b.daemons, node)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	return nil
}

// signal sends a daemon a signal.
func (b *Bed) signal(node string, s syscall.Signal) error {
	p := b.daemons[node]
	if p == nil {
		return fmt.Errorf("no daemon runs at %s", node)
	}
	return p.cmd.Process.Signal(s)
}

// weft is the program with arguments.
func (b *Bed) weft(ctx context.Context, args ...string) *exec.Cmd {
	argv := b.options.Argv
	c := exec.CommandContext(ctx, argv[0], append(argv[1:len(argv):len(argv)], args...)...)
	c.Env = b.options.Env
	return c
}

// do runs f in a node's namespace.
func (b *Bed) do(node string, f func() error) error {
	n, err := b.topology.Lookup(node)
	if err != nil {
		return err
	}
	return b.lab.Do(n.ID, f)
}

// shell runs a script on a node.
func (b *Bed) shell(node, script string) error {
	var out []byte
	err := b.do(node, func() (err error) { out, err = exec.Command("sh", "-ec", script).CombinedOutput(); return err })
	if err != nil {
		return fmt.Errorf("%s: %s: %w: %s", node, script, err, out)
	}
	return nil
}

// asPlanned brings nodes back to the lab's plan.
func (b *Bed) asPlanned(nodes ...string) error {
	for _, name := range nodes {
		n, err := b.topology.Lookup(name)
		if err != nil {
			return err
		}
		plan, err := b.lab.Plan(n.ID)
		if err != nil {
			return err
		}
		if err := b.do(name, func() error { _, err := fabric.Apply(plan); return err }); err != nil {
			return err
		}
	}
	return nil
}

// port is the one of a node that leads to another.
func (b *Bed) port(from, to string) string {
	a, err1 := b.topology.Lookup(from)
	z, err2 := b.topology.Lookup(to)
	if err := errors.Join(err1, err2); err != nil {
		panic(err) // a mistake in the list of faults
	}
	for i, p := range b.topology.Ports(a.ID) {
		if p.Peer == z.ID {
			return fmt.Sprintf("p%d", i)
		}
	}
	panic(fmt.Sprintf("%s and %s are no neighbours", from, to))
}

// log is the end of what a daemon has logged.
func (b *Bed) log(node string) string {
	text, _ := os.ReadFile(filepath.Join(b.dir, node+".log"))
	return string(text[max(0, len(text)-2000):])
}

// Close ends all.
func (b *Bed) Close() (err error) {
	if b.traffic != nil {
		b.traffic.close()
	}
	for node := range b.agents {
		err = errors.Join(err, b.stop(node))
	}
	for node := range b.daemons {
		err = errors.Join(err, b.stop(node))
	}
	if b.dir != "" { // while the lab is held: then it is another's
		err = errors.Join(err, os.RemoveAll(b.dir))
	}
	if b.lab != nil {
		err = errors.Join(err, b.lab.Close())
	}
	return err
}
