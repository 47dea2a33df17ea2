package failover

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/lab"
	"weft/topology"
)

// agentsReady is what a process of agents says when they have found each other.
const agentsReady = "ready"

// RunAgents runs an agent at every switch of a lab until in ends. It writes a line to out
// when every agent considers its own links up. With traced it also writes a line for
// every change of carrier that an agent reads, before and after that.
func RunAgents(ctx context.Context, name string, hello time.Duration, traced bool, in io.Reader, out io.Writer) (err error) {
	lab, err := lab.Open(name)
	if err != nil {
		return err
	}
	defer lab.Close()
	c := newControl(lab, hello)
	if traced {
		c.trace = func(e traceEvent) { fmt.Fprintln(out, formatCarrier(e)) }
	}
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

// agentProcess is a process that runs RunAgents. Switches have processors of their own.
// Here their agents have a process of their own, which the machine's scheduler prefers to
// the processes that make the load. A nice value would not do: it counts within a session
// only where the kernel groups processes by session (sched_autogroup_enabled).
type agentProcess struct {
	cmd   *exec.Cmd
	in    io.Closer
	lines sync.WaitGroup // that reads its trace
}

// The agents' priority: agentRoundRobin among real-time processes, and agentNice if that is
// refused.
const (
	agentRoundRobin = 2
	agentNice       = -15
)

// startAgentProcess starts one. trace hears of what its agents read, unless it is nil.
func startAgentProcess(command []string, lab string, hello time.Duration, trace func(traceEvent)) (p *agentProcess, err error) {
	args := append(command[1:len(command):len(command)], "--name", lab, "--hello", hello.String())
	if trace != nil {
		args = append(args, "--trace")
	}
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
	if err := startPreferred(p.cmd); err != nil {
		return nil, fmt.Errorf("process of the agents: %w", err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == agentsReady {
			p.lines.Go(func() {
				for lines.Scan() {
					if e, ok := parseCarrier(lines.Text()); ok {
						trace(e)
					}
				}
			})
			return p, nil
		}
	}
	p.in.Close()
	return nil, fmt.Errorf("process of the agents: %w: %s", errors.Join(p.cmd.Wait(), errors.New("not ready")), complaint.String())
}

// formatCarrier writes an event for the parent's trace.
func formatCarrier(e traceEvent) string {
	return fmt.Sprintf("carrier\t%d\t%s\t%s", e.At.UnixNano(), e.Node, e.Of)
}

// parseCarrier reads what formatCarrier writes.
func parseCarrier(line string) (e traceEvent, ok bool) {
	f := strings.Split(line, "\t")
	if len(f) != 4 || f[0] != "carrier" {
		return e, false
	}
	at, err := strconv.ParseInt(f[1], 10, 64)
	return traceEvent{At: time.Unix(0, at), Node: f[2], What: traceCarrier, Of: f[3]}, err == nil
}

// startPreferred starts a process with the agents' priority, which it gets from the
// thread that forks. Who may not have it goes without.
func startPreferred(cmd *exec.Cmd) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and ends with the goroutine
		rr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: agentRoundRobin}
		if unix.SchedSetAttr(0, &rr, 0) != nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, 0, agentNice)
		}
		done <- cmd.Start()
	}()
	return <-done
}

func (p *agentProcess) close() error {
	p.in.Close()
	p.lines.Wait() // before Wait, which closes the pipe
	return p.cmd.Wait()
}
