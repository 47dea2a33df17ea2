package failover

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/topology"
)

// agentsReady is what a process of agents says when they have found each other.
const agentsReady = "ready"

// RunAgents runs an agent at every switch of a lab until in ends. It writes a line
// to out when all of them take their own links for up.
func RunAgents(ctx context.Context, name string, hello time.Duration, in io.Reader, out io.Writer) (err error) {
	lab, err := fabric.Open(name)
	if err != nil {
		return err
	}
	defer lab.Close()
	c := newControl(lab, hello)
	defer func() { err = errors.Join(err, c.close()) }()
	for n := range lab.Config.Topology.Nodes() {
		if n.Layer == topology.LayerHost {
			continue
		}
		if err := c.startAgent(n.ID); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	if err := c.await(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, agentsReady)
	_, err = io.Copy(io.Discard, in)
	return err
}

// agentProcess is a process that runs RunAgents. Switches have processors of
// their own; here their agents have a process of their own, which the machine's
// scheduler prefers to those who make the load.
type agentProcess struct {
	cmd *exec.Cmd
	in  io.Closer
}

// agentNice is the agents' priority.
const agentNice = -15

func startAgentProcess(command []string, lab string, hello time.Duration) (p *agentProcess, err error) {
	args := append(command[1:len(command):len(command)], "--name", lab, "--hello", hello.String())
	p = &agentProcess{cmd: exec.Command(command[0], args...)}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var complaint strings.Builder
	p.cmd.Stderr = &complaint
	if err := startNice(p.cmd); err != nil {
		return nil, fmt.Errorf("process of the agents: %w", err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if strings.TrimSpace(line) != agentsReady {
		p.in.Close()
		return nil, fmt.Errorf("process of the agents: %w: %s", errors.Join(p.cmd.Wait(), errors.New("not ready")), complaint.String())
	}
	return p, nil
}

// startNice starts a process with agentNice, which it gets from the thread that
// forks. Who may not have it goes without.
func startNice(cmd *exec.Cmd) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and ends with the goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, agentNice)
		done <- cmd.Start()
	}()
	return <-done
}

func (p *agentProcess) close() error {
	p.in.Close()
	return p.cmd.Wait()
}
