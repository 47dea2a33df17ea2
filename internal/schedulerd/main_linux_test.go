package schedulerd

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/topology"
)

// inOwn tells the process that has a network namespace of its own.
const inOwn = "WEFT_TEST_OWN_NAMESPACE"

// TestMain runs the tests in a network namespace where all hosts' addresses are local, as a node
// speaks from its own.
func TestMain(m *testing.M) {
	if os.Getenv(inOwn) == "" {
		os.Exit(again())
	}
	if err := localHosts(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// again runs this program in new namespaces, and returns its exit code.
func again() int {
	c := exec.Command("/proc/self/exe", os.Args[1:]...)
	c.Env = append(os.Environ(), inOwn+"=1")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if err := c.Run(); c.ProcessState == nil {
		panic(err)
	}
	return c.ProcessState.ExitCode()
}

func localHosts() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return err
	}
	top, err := topology.Parse(manyHosts) // the hosts of testFabric are some of these
	if err != nil {
		return err
	}
	for h := range topology.NodeID(top.NumHosts()) {
		a, err := netlink.ParseAddr(top.Node(h).Addr.String() + "/32")
		if err == nil {
			err = netlink.AddrAdd(lo, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
