package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"weft/internal/doctor"
)

// sshFabric is machines that are looked at by ssh.
type sshFabric struct {
	hosts   []string
	command string
	timeout time.Duration
}

func (s *sshFabric) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&s.hosts, "ssh", nil, "with --fabric: `machines` to look at by the program ssh, as user@host or as ssh_config has them")
	f.StringVar(&s.command, "ssh-command", "weft", "what runs weft on those machines, such as \"sudo -n weft\"")
	f.DurationVar(&s.timeout, "ssh-timeout", 30*time.Second, "how long each of them may take")
}

const (
	// atATime bounds how many machines are looked at at a time.
	atATime = 8
	// maxAnswer bounds what one machine says, in bytes.
	maxAnswer = 4 << 20
)

// examine looks at all machines, some at a time.
func (s *sshFabric) examine(ctx context.Context) []doctor.Finding {
	return examineAll(len(s.hosts), func(i int) []doctor.Finding {
		all, err := s.ask(ctx, s.hosts[i])
		if err != nil {
			all = []doctor.Finding{doctor.Unreachable(err.Error(), fmt.Sprintf("ssh %s %s doctor --json", s.hosts[i], s.command))}
		}
		for j := range all {
			all[j].Node = s.hosts[i]
		}
		return all
	})
}

// examineAll looks at n machines, some at a time, and merges what was found in their order.
func examineAll(n int, look func(i int) []doctor.Finding) []doctor.Finding {
	found := make([][]doctor.Finding, n)
	free := make(chan struct{}, atATime)
	var wait sync.WaitGroup
	for i := range n {
		free <- struct{}{}
		wait.Go(func() {
			found[i] = look(i)
			<-free
		})
	}
	wait.Wait()
	return doctor.Merge(found...)
}

// ask runs weft doctor on a machine.
func (s *sshFabric) ask(ctx context.Context, host string) (all []doctor.Finding, err error) {
	if host == "" || strings.HasPrefix(host, "-") {
		return nil, fmt.Errorf("%q is no machine's name", host)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--", host, s.command+" doctor --json")
	cmd.WaitDelay = time.Second
	var out, said bounded
	out.most, said.most = maxAnswer, 4096
	cmd.Stdout, cmd.Stderr = &out, &said
	failed := cmd.Run() // status 1 says that something is wrong there
	if err := json.Unmarshal(out.buf.Bytes(), &all); err == nil && len(all) > 0 {
		return all, nil
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("no answer within %v", s.timeout)
	case failed == nil:
		return nil, fmt.Errorf("no findings: %q", out.buf.Bytes()[:min(out.buf.Len(), 80)])
	}
	words := strings.TrimSpace(said.buf.String())
	if words == "" {
		return nil, failed
	}
	return nil, fmt.Errorf("%w: %s", failed, words)
}

// bounded keeps the first bytes of what is written. The buffer is not embedded, or io.Copy would
// take its ReadFrom, which knows no bound.
type bounded struct {
	buf  bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.buf.Write(p[:min(len(p), max(0, b.most-b.buf.Len()))])
	return len(p), nil
}
