package schedulerlab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// process is a program that runs.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed at its end
	err   error         // why it has ended, after that
}

// start starts a program in the namespace of the calling thread, which logs to a file of its
// name.
func (s *Scheduled) start(name string, c *exec.Cmd) error {
	log, err := os.Create(s.log(name))
	if err != nil {
		return err
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return err
	}
	p := &process{cmd: c, ended: make(chan struct{})}
	go func() {
		p.err = c.Wait()
		close(p.ended)
	}()
	s.run[name] = p
	return nil
}

func (s *Scheduled) log(name string) string { return filepath.Join(s.dir, name+".log") }

// startWeft starts weft scheduler or weft switch.
func (s *Scheduled) startWeft(name, what, config string) error {
	file := filepath.Join(s.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	c := exec.Command(s.c.Argv[0], append(s.c.Argv[1:len(s.c.Argv):len(s.c.Argv)], what, "--config", file)...)
	c.Env = s.c.Env
	return s.start(name, c)
}

// end kills a process. Switches' kernels keep their programs until the lab ends.
func (s *Scheduled) end(name string) error {
	p := s.run[name]
	if p == nil {
		return nil
	}
	delete(s.run, name)
	if !closed(s.given) && closed(p.ended) { // an interrupt is everybody's
		return fmt.Errorf("%s had ended: %v%s", name, p.err, s.says(name))
	}
	err := p.cmd.Process.Kill()
	<-p.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// await waits until lacks is empty.
func (s *Scheduled) await(ctx context.Context, name string, lacks func() string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, processLimit, fmt.Errorf("not within %v", processLimit))
	defer cancel()
	for {
		why := lacks()
		if why == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %s%s", name, context.Cause(ctx), why, s.says(name))
		case <-s.run[name].ended:
			return fmt.Errorf("%s has ended: %v%s", name, s.run[name].err, s.says(name))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// says is what a process has logged last.
func (s *Scheduled) says(name string) string {
	const most = 4 << 10
	text, _ := os.ReadFile(s.log(name))
	if len(text) == 0 {
		return ""
	}
	return "; it says\n" + string(text[max(0, len(text)-most):])
}
