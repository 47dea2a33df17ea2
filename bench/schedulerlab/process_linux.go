package schedulerlab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"weft/bench/child"
)

// start starts a program in a network namespace. It logs to a file of its name.
func (s *Scheduled) start(name, namespace string, c *exec.Cmd) error {
	log, err := os.Create(s.log(name))
	if err != nil {
		return err
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	p, err := child.Start(namespace, c)
	if err != nil {
		return err
	}
	s.run[name] = p
	return nil
}

func (s *Scheduled) log(name string) string { return filepath.Join(s.dir.Path, name+".log") }

// startWeft starts weft scheduler or weft switch in a network namespace.
func (s *Scheduled) startWeft(name, namespace, what, config string) error {
	file := filepath.Join(s.dir.Path, name+".yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	c := exec.Command(s.c.Argv[0], append(s.c.Argv[1:len(s.c.Argv):len(s.c.Argv)], what, "--config", file)...)
	c.Env = s.c.Env
	return s.start(name, namespace, c)
}

// end kills a process. Switches' kernels keep their programs until the lab ends.
func (s *Scheduled) end(name string) error {
	p := s.run[name]
	if p == nil {
		return nil
	}
	delete(s.run, name)
	if !closed(s.given) && closed(p.Ended()) { // an interrupt is everybody's
		return fmt.Errorf("%s had ended: %v%s", name, p.Wait(), s.says(name))
	}
	return p.Kill()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// await waits until lacks is empty, limit at most.
func (s *Scheduled) await(ctx context.Context, name string, limit time.Duration, lacks func() string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %v", limit))
	defer cancel()
	p := s.run[name]
	for {
		why := lacks()
		if why == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %s%s", name, context.Cause(ctx), why, s.says(name))
		case <-p.Ended():
			return fmt.Errorf("%s has ended: %v%s", name, p.Wait(), s.says(name))
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
