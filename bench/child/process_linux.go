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

// Process is a program that runs. Its methods are safe for concurrent use.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // of Wait, once ended is closed
}

// Start starts a program in a network namespace, or in the process' own if namespace is "".
// The program is killed when this process ends, however it does.
func Start(namespace string, c *exec.Cmd) (*Process, error) {
	start := c.Start
	if namespace != "" {
		start = func() error { return kernel.InNamespace(namespace, c.Start) }
	}
	if err := start(); err != nil {
		return nil, err
	}
	endGuard, err := guard(c.Process.Pid)
	if err != nil {
		return nil, errors.Join(err, c.Process.Kill(), c.Wait())
	}
	p := &Process{cmd: c, ended: make(chan struct{})}
	go func() {
		p.err = c.Wait()
		endGuard()
		close(p.ended)
	}()
	return p, nil
}

// guard starts a shell that kills another process when this one has ended, which closes the
// pipe that the shell reads. A signal at the parent's death (Pdeathsig) would not do: weft
// host and weft switch lose it when they drop privileges.
func guard(pid int) (end func(), err error) {
	c := exec.Command("sh", "-c", `read x; kill -9 "$1"`, "sh", strconv.Itoa(pid))
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal is not for it
	if _, err := c.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("guard of process %d: %w", pid, err)
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
	if err := p.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Kill kills the program and waits for its end.
func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	<-p.ended
	return err
}
