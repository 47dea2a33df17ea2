package child

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
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
// The kernel kills the program when this process dies.
func Start(namespace string, c *exec.Cmd) (*Process, error) {
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.SysProcAttr.Pdeathsig = syscall.SIGKILL
	p := &Process{cmd: c, ended: make(chan struct{})}
	begun := make(chan error, 1)
	go func() {
		err := onThread(namespace, func() error {
			if err := c.Start(); err != nil {
				return err
			}
			begun <- nil
			p.err = c.Wait()
			return nil
		})
		if err != nil { // it has not begun
			begun <- err
			return
		}
		close(p.ended)
	}()
	if err := <-begun; err != nil {
		return nil, err
	}
	return p, nil
}

// onThread runs f on a thread that nobody else uses meanwhile. The kernel takes the thread
// that starts a program for its parent, and kills the program when that thread ends.
func onThread(namespace string, f func() error) error {
	if namespace != "" {
		return kernel.InNamespace(namespace, f)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return f()
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
