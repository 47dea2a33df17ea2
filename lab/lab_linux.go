package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/topology"
)

// Lab is a fabric in network namespaces, one per node, named weft-LAB-NODE so
// that ip netns exec works on them too. Methods are safe for concurrent use.
type Lab struct {
	Config Config
	Reused bool     // Up found it built already
	Notes  []string // what this kernel lacks, and what that means

	// Repaired has a sentence for each thing that Up mended in a lab that existed already.
	Repaired []string

	lock     *labLock // of an ephemeral lab
	instance string   // labState.Instance

	classifiers *Classifiers // nil without

	mu        sync.Mutex
	observe   func(link topology.LinkID, from, to time.Time) // may be nil
	nodes     map[topology.NodeID]*nodeHandle
	silencers map[FailureMode]*ebpf.Program
	first     string // the first node's namespace, once Current was asked
	announced bool   // EnableMPTCP has had hosts announce their ports
	// subflowers are the hosts' path managers, where the kernel's own opens too few subflows.
	subflowers map[topology.NodeID]*subflower
}

// nodeHandle is an open connection to a node's kernel configuration.
type nodeHandle struct {
	*netlink.Handle
	ports     []string
	links     []netlink.Link // the ports as devices, in the same order
	index     map[int]int    // position of the port with an interface index
	unlimited bool           // there are no queues
}

// Open finds a lab that is up.
func Open(name string) (*Lab, error) {
	if err := checkLabName(name); err != nil {
		return nil, err
	}
	state, err := readState(name)
	if err != nil {
		return nil, err
	}
	if state == nil {
		return nil, fmt.Errorf("lab %s is not up: weft lab up --name %s", name, name)
	}
	if !state.Ready {
		return nil, fmt.Errorf("lab %s is half built: weft lab up --name %s builds it anew, weft lab down --name %s clears it away", name, name, name)
	}
	cfg, err := state.config(name)
	if err != nil {
		return nil, fmt.Errorf("lab %s: %w", name, err)
	}
	return newLab(cfg, state), nil
}

func newLab(cfg Config, s *labState) *Lab {
	return &Lab{Config: cfg, Notes: s.Notes, instance: s.Instance, nodes: make(map[topology.NodeID]*nodeHandle),
		silencers: make(map[FailureMode]*ebpf.Program), subflowers: make(map[topology.NodeID]*subflower)}
}

// Close closes the lab's handles. It takes down a lab made by Hold.
func (l *Lab) Close() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.classifiers != nil {
		err = l.classifiers.Close()
		l.classifiers = nil
	}
	if managers := l.closeSubflowers(); l.lock == nil { // else the hosts go
		err = errors.Join(err, managers)
	}
	for _, n := range l.nodes {
		n.Close()
	}
	clear(l.nodes)
	for _, prog := range l.silencers {
		prog.Close()
	}
	clear(l.silencers)
	if l.lock == nil {
		return err
	}
	defer func() {
		l.lock.release()
		l.lock = nil
	}()
	_, err2 := tearDown(l.Config.Name)
	return errors.Join(err, err2)
}

// Namespace returns the name of a node's network namespace.
func (l *Lab) Namespace(id topology.NodeID) string {
	return l.Config.namespace(l.Config.plant().Node(id).Name)
}

// Lookup finds a node by its name or one of its addresses.
func (l *Lab) Lookup(name string) (topology.Node, error) { return l.Config.plant().Lookup(name) }

// Plan returns the plan by which a node of the lab was configured.
func (l *Lab) Plan(id topology.NodeID) (fabric.NodePlan, error) { return l.Config.plan(id) }

// Do runs f in a node's network namespace, on a thread of its own. Sockets and files that f
// opens stay in the namespace. Goroutines that f starts are not in it, so f itself must
// dial and listen. f must not end its goroutine, as FailNow of package testing does.
func (l *Lab) Do(id topology.NodeID, f func() error) error {
	return kernel.InNamespace(l.Namespace(id), f)
}

// Exec replaces the process by a program in a node's network namespace. It
// returns only on failure. env is as in os.Environ.
func (l *Lab) Exec(id topology.NodeID, argv, env []string) error {
	if len(argv) == 0 {
		return fmt.Errorf("no program to run on %s", l.Config.plant().Node(id).Name)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return l.Do(id, func() error {
		// The new program keeps the namespace of the thread that starts it.
		return &os.PathError{Op: "exec", Path: path, Err: syscall.Exec(path, argv, env)}
	})
}

// node returns the open handle of a node, with l.mu held.
func (l *Lab) node(id topology.NodeID) (*nodeHandle, error) {
	if n := l.nodes[id]; n != nil {
		return n, nil
	}
	plan, err := l.Config.plan(id)
	if err != nil {
		return nil, err
	}
	n := &nodeHandle{index: make(map[int]int), unlimited: l.Config.Unlimited}
	n.ports = portNames(plan)
	ns, err := kernel.OpenNamespace(l.Namespace(id))
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	if n.Handle, err = openHandle(ns); err != nil {
		return nil, err
	}
	links, err := kernel.Links(n.Handle, n.ports)
	if err != nil {
		n.Close()
		return nil, err
	}
	n.links = links
	for i, link := range links {
		n.index[link.Attrs().Index] = i
	}
	l.nodes[id] = n
	return n, nil
}

func openHandle(ns netns.NsHandle) (h *netlink.Handle, err error) {
	err = kernel.Within(ns, func() error {
		h, err = netlink.NewHandle(kernel.Families...)
		return kernel.Explain(err)
	})
	return h, err
}

// portNames are the names of the planned ports.
func portNames(p fabric.NodePlan) (names []string) {
	for _, port := range p.Ports {
		names = append(names, port.Name)
	}
	return names
}
