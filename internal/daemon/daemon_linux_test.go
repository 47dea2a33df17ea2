package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/service"
	"weft/internal/switchd"
)

// The test program is the daemon, too, when it is run with these variables.
const (
	childConfig = "WEFT_TEST_HOST_CONFIG"
	childRelay  = "WEFT_TEST_HOST_RELAY" // with the relay in the place of the gateway
	childSwitch = "WEFT_TEST_SWITCH"     // it is weft switch instead
	// It is a Go service with a Host of its own, see embedded.
	childEmbedded = "WEFT_TEST_EMBEDDED"
	childVitals   = "WEFT_TEST_VITALS" // it tells how it is, see serveVitals
	childGroup    = "WEFT_TEST_GROUP"  // the directory of a control group that it is in
)

func TestMain(m *testing.M) {
	file := os.Getenv(childConfig)
	if file == "" {
		clearTestLabs()
		code := m.Run()
		if err := closeSharedLab(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}
	if os.Getenv(childRelay) != "" {
		startDataplane = startRelay
	}
	if group := os.Getenv(childGroup); group != "" && os.Getuid() == 0 {
		if err := writeExisting(filepath.Join(group, "cgroup.procs"), "0"); err != nil {
			fmt.Fprintln(os.Stderr, "group:", err)
			os.Exit(1)
		}
	}
	if spec := os.Getenv(childEmbedded); spec != "" {
		fmt.Fprintln(os.Stderr, "embedded:", embedded(spec))
		os.Exit(1)
	}
	if os.Getenv(childVitals) != "" {
		if err := serveVitals(nil); err != nil {
			fmt.Fprintln(os.Stderr, "vitals:", err)
			os.Exit(1)
		}
	}
	signals, _ := service.Signals()
	run := Run
	if os.Getenv(childSwitch) != "" {
		run = switchd.Run
	}
	if err := run(context.Background(), file, signals, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child is a daemon in a process of its own.
type child struct {
	n      *network
	node   string
	file   string
	cmd    *exec.Cmd
	log    *os.File
	exited chan error

	isSwitch bool
}

// start runs a daemon on a host and waits until it is at work. env are further
// variables.
func (n *network) start(node, config string, env ...string) *child {
	n.Helper()
	c := n.launch(node, config, env...)
	c.waitFor("\nmode ") // a line of its own: a warning may speak of modes, too
	return c
}

// fail runs a daemon that must not start, and returns what it says.
func (n *network) fail(node, config string, env ...string) string {
	n.Helper()
	c := n.launch(node, config, env...)
	select {
	case err := <-c.exited:
		if err == nil {
			n.Errorf("%s: ended without an error:\n%s", config, c.messages())
		}
	case <-time.After(20 * time.Second):
		n.Fatalf("%s: goes on:\n%s", config, c.messages())
	}
	return c.messages()
}

// inGateway returns a configuration of mode gateway and policy presto where it names none.
func inGateway(config string) string {
	for _, line := range []string{"mode: gateway", "policy: presto"} {
		key, _, _ := strings.Cut(line, " ")
		if !strings.Contains("\n"+config, "\n"+key) {
			config += "\n" + line + "\n" // behind the rest, whose lines keep their numbers
		}
	}
	return config
}

func (n *network) launch(node, config string, env ...string) *child {
	n.Helper()
	c := &child{n: n, node: node, file: filepath.Join(n.dir, node+".yaml"), exited: make(chan error, 1),
		isSwitch: slices.Contains(env, childSwitch+"=1")}
	c.write(config)
	var err error
	if c.log, err = os.CreateTemp(n.dir, node+".log"); err != nil {
		n.Fatal(err)
	}
	c.cmd = exec.Command("/proc/self/exe", "-test.run=^$")
	c.cmd.Env = append(append(os.Environ(), childConfig+"="+c.file), env...)
	c.cmd.Stderr = c.log
	n.do(node, c.cmd.Start)
	n.children.add(c)
	go func() {
		err := c.cmd.Wait()
		n.children.remove(c)
		c.exited <- err
		close(c.exited)
	}()
	n.Cleanup(func() {
		c.cmd.Process.Kill()
		<-c.exited
		switch m := c.messages(); {
		case strings.Contains(m, "DATA RACE"): // whose exit code nobody may have looked at
			n.Errorf("%s: %s", node, m)
		case n.Failed():
			n.Logf("what the daemon of %s said:\n%s", node, m)
		}
		n.lab.Do(n.node(node).ID, func() error {
			_, err := Cleanup()
			return err
		})
	})
	return c
}

func (c *child) write(config string) {
	c.n.Helper()
	if !c.isSwitch {
		config = inGateway(config)
	}
	if err := os.WriteFile(c.file, []byte(config), 0o644); err != nil {
		c.n.Fatal(err)
	}
}

func (c *child) messages() string {
	b, _ := os.ReadFile(c.log.Name())
	return string(b)
}

// waitFor waits for a message.
func (c *child) waitFor(message string) {
	c.n.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains("\n"+c.messages(), message); time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-c.exited:
			c.n.Fatalf("%s: the daemon ended before it said %q (%v):\n%s", c.node, message, err, c.messages())
		default:
		}
		if time.Now().After(end) {
			c.n.Fatalf("%s: the daemon does not say %q:\n%s", c.node, message, c.messages())
		}
	}
}

// end sends a signal and waits for the end, which is to be clean after SIGTERM.
func (c *child) end(s syscall.Signal) {
	c.n.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.n.Fatal(err)
	}
	select {
	case err := <-c.exited:
		if s == syscall.SIGTERM && err != nil {
			c.n.Errorf("%s: %v:\n%s", c.node, err, c.messages())
		}
	case <-time.After(20 * time.Second):
		c.n.Fatalf("%s: goes on after %v:\n%s", c.node, s, c.messages())
	}
}

// status asks the daemon and returns the fields by name.
func (c *child) status() map[string]string {
	c.n.Helper()
	fields := make(map[string]string)
	c.n.do(c.node, func() error {
		socket, err := StatusSocket()
		if err != nil {
			return err
		}
		text, err := service.AskStatus(c.n.Context(), socket, "weft host")
		for try := 0; try < 3 && errors.Is(err, os.ErrDeadlineExceeded); try++ { // it may wait for the kernel
			text, err = service.AskStatus(c.n.Context(), socket, "weft host")
		}
		if err != nil {
			return err
		}
		list, err := service.Fields(text)
		for _, f := range list {
			fields[f.Name] = f.Value
		}
		return err
	})
	return fields
}
