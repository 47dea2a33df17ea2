package throughput

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"weft/topology"
)

// process is a child in a host's network namespace. It answers every line on
// its standard input with a report, and ends when that does, so it cannot
// outlive its parent whatever that dies of.
type process struct {
	cmd     *exec.Cmd
	in, out *os.File
	answers *bufio.Reader
	errors  tail
	// exitLimit is how long it may take to clean up after itself.
	exitLimit time.Duration
}

// start runs a program at a host.
func (b *bench) start(at topology.NodeID, argv []string) (*process, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childIn.Close()
	out, childOut, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, err
	}
	defer childOut.Close()
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), in: in, out: out, answers: bufio.NewReader(out), exitLimit: exitLimit}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, &p.errors
	// An interrupt from the terminal is for the parent, which ends the others
	// in their order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = exitLimit
	// The child gets the namespace of the thread that starts it.
	if err := b.lab.Do(at, p.cmd.Start); err != nil {
		in.Close()
		out.Close()
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return p, nil
}

// answerLimit is more than any answer takes of a connection that works: what
// is on its way must arrive.
const answerLimit = 20 * time.Second

// ask sends a command and returns the answer.
func (p *process) ask(ctx context.Context, command string) (report, error) {
	if _, err := p.in.WriteString(command + "\n"); err != nil {
		return report{}, err
	}
	return p.answer(ctx)
}

// answer waits for an answer.
func (p *process) answer(ctx context.Context) (report, error) {
	return p.answerWithin(ctx, answerLimit)
}

func (p *process) answerWithin(ctx context.Context, limit time.Duration) (r report, err error) {
	p.out.SetReadDeadline(time.Now().Add(limit))
	defer context.AfterFunc(ctx, func() { p.out.SetReadDeadline(time.Unix(1, 0)) })()
	line, err := p.answers.ReadBytes('\n')
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return r, fmt.Errorf("no answer within %v: the connection hangs", limit)
	case err != nil:
		return r, fmt.Errorf("ended unasked: %w", err) // stop will tell why
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("answer %q: %w", line, err)
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

// exitLimit is how long most processes may take to clean up after themselves.
const exitLimit = 5 * time.Second

// stop ends the process, which may have ended already, and waits for it.
func (p *process) stop() error {
	p.in.Close()
	kill := time.AfterFunc(p.exitLimit, func() { p.cmd.Process.Kill() })
	err := p.cmd.Wait()
	p.out.Close()
	if !kill.Stop() {
		err = fmt.Errorf("did not end within %v", p.exitLimit)
	}
	if err == nil {
		return nil
	}
	// What it wrote to its standard error says more.
	return fmt.Errorf("%s: %w: %s", p.cmd.Path, err, &p.errors)
}

// tail keeps the last of what is written to it. Its String may be called while
// others write: exec.Cmd does so from a goroutine of its own.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const maxTail = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	t.b = t.b[max(0, len(t.b)-maxTail):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}
