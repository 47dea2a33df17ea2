package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"weft/internal/kernel"
)

// Process is a program that runs. One that leads a process group (SysProcAttr.Setpgid) gets
// its signals with all of the group. Its methods are safe for concurrent use.
type Process struct {
	cmd   *exec.Cmd
	group bool
	ended chan struct{}
	err   error // of Wait, once ended is closed
}

// Start starts a program in a network namespace, or in the calling thread's if namespace is "".
// The program, or its group, is killed when this process ends, however it does.
func Start(namespace string, c *exec.Cmd) (*Process, error) {
	start := c.Start
	if namespace != "" {
		start = func() error { return kernel.InNamespace(namespace, c.Start) }
	}
	if err := start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: c, group: c.SysProcAttr != nil && c.SysProcAttr.Setpgid, ended: make(chan struct{})}
	endGuard, err := guard(p.number())
	if err != nil {
		return nil, errors.Join(err, c.Process.Kill(), c.Wait())
	}
	go func() {
		p.err = c.Wait()
		endGuard()
		close(p.ended)
	}()
	return p, nil
}

// number is what kill(2) takes for all of the program.
func (p *Process) number() int {
	if p.group {
		return -p.cmd.Process.Pid
	}
	return p.cmd.Process.Pid
}

// guard starts a shell that kills another process when this one has ended, which closes the
// pipe that the shell reads. A signal at the parent's death (Pdeathsig) would not do: weft
// host and weft switch lose it when they drop privileges.
func guard(number int) (end func(), err error) {
	c := exec.Command("sh", "-c", `read x; kill -9 "$1"`, "sh", strconv.Itoa(number))
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal is not for it
	if _, err := c.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("guard of process %d: %w", number, err)
	}
	return func() {
		_ = c.Process.Kill() // it has not ended
		_ = c.Wait()         // and closes the pipe
	}, nil
}

// Ended is closed at the program's end.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait waits for the program's end, and returns why it has ended: nil if it was a success.
func (p *Process) Wait() error {
	<-p.ended
	return p.err
}

// Signal sends a signal. A program that has ended needs none.
func (p *Process) Signal(s syscall.Signal) error {
	select {
	case <-p.ended: // its number may be another's by now
		return nil
	default:
	}
	var err error
	if p.group {
		err = syscall.Kill(p.number(), s)
	} else {
		err = p.cmd.Process.Signal(s)
	}
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) { // it has ended in this moment
		return nil
	}
	return err
}

// Kill kills the program and waits for its end.
func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	<-p.ended
	return err
}
