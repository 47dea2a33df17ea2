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

// process is a program that runs.
type process struct {
	cmd   *exec.Cmd
	name  string
	out   *text
	ended chan struct{} // closed at its end
	err   error         // of Wait, after that
}

// start starts a program in the namespace of the calling thread.
func start(c *exec.Cmd, until string) (*process, error) {
	p := &process{cmd: c, name: filepath.Base(c.Path), out: newText(until), ended: make(chan struct{})}
	c.Stdout, c.Stderr = p.out, p.out
	if err := c.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = c.Wait()
		close(p.ended)
	}()
	return p, nil
}

// signal is sent to the process group.
func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.ended: // its number may be another's by now
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, s) // fails if it has ended in this moment
	}
}

// end ends a program that has got a signal to end, by force after patience.
func (p *process) end() error {
	select {
	case <-p.ended:
		return nil
	case <-time.After(patience):
		p.signal(syscall.SIGKILL)
		<-p.ended
		return fmt.Errorf("%s did not end within %v of its signal, and was killed", p.name, patience)
	}
}

// await waits for a client's end, and returns how long it has taken since begin. A program that
// says its line until has done its work: it is interrupted, so that it prints its figures.
func (p *process) await(ctx context.Context, begin time.Time) (took time.Duration, err error) {
	select {
	case <-p.out.said:
		took = time.Since(begin)
		p.signal(syscall.SIGINT)
	case <-p.ended:
	case <-ctx.Done():
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.signal(syscall.SIGKILL)
		<-p.ended
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
	if p.err != nil {
		return 0, fmt.Errorf("%s: %w; it printed %.200q", p.name, p.err, p.out)
	}
	return took, nil
}
