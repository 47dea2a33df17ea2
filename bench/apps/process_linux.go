package apps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"weft/bench/child"
)

const (
	// patience is how long a server may take to listen, and to end.
	patience = 30 * time.Second
	// maxText bounds what is kept of what a program prints.
	maxText = 4 << 20
)

// command is a program in a directory of its own. It leads a process group.
func command(dir string, user *syscall.Credential, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: user}
	c.WaitDelay = time.Second // for what has left the group and holds the output
	return c
}

// text is what a program prints, as far as that is kept. After the line until, if that is not
// empty, the channel said is closed. It is safe for concurrent use.
type text struct {
	mu    sync.Mutex
	kept  bytes.Buffer
	until string
	said  chan struct{}
	once  sync.Once
}

func newText(until string) *text { return &text{until: until, said: make(chan struct{})} }

func (t *text) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Write(b[:min(len(b), maxText-t.kept.Len())])
	if t.until != "" && bytes.Contains(t.kept.Bytes(), []byte(t.until+"\n")) {
		t.once.Do(func() { close(t.said) })
	}
	return len(b), nil
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept.String()
}

// process is a program that runs, with what it prints.
type process struct {
	*child.Process
	name string
	out  *text
}

// start starts a program in the namespace of the calling thread.
func start(c *exec.Cmd, until string) (*process, error) {
	p := &process{name: filepath.Base(c.Path), out: newText(until)}
	c.Stdout, c.Stderr = p.out, p.out
	var err error
	if p.Process, err = child.Start("", c); err != nil {
		return nil, err
	}
	return p, nil
}

// end ends a program that has got a signal to end, by force after patience.
func (p *process) end() error {
	select {
	case <-p.Ended():
		return nil
	case <-time.After(patience):
		err := fmt.Errorf("%s did not end within %v of its signal, and was killed", p.name, patience)
		return errors.Join(err, p.Kill())
	}
}

// await waits for a client's end, and returns how long it has taken since begin. A program that
// says its line until has done its work: it is interrupted, so that it prints its figures.
func (p *process) await(ctx context.Context, begin time.Time) (took time.Duration, err error) {
	select {
	case <-p.out.said:
		took = time.Since(begin)
		if err := p.Signal(syscall.SIGINT); err != nil {
			return 0, errors.Join(fmt.Errorf("%s: %w", p.name, err), p.Kill())
		}
	case <-p.Ended():
	case <-ctx.Done():
	}
	select {
	case <-p.Ended():
	case <-ctx.Done():
		if err := p.Kill(); err != nil {
			return 0, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if took == 0 {
		took = time.Since(begin)
	}
	if err := ctx.Err(); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("has not done its work in time")
		}
		return 0, fmt.Errorf("%s: %w; it printed %.200q", p.name, err, p.out)
	}
	if err := p.Wait(); err != nil {
		return 0, fmt.Errorf("%s: %w; it printed %.200q", p.name, err, p.out)
	}
	return took, nil
}
