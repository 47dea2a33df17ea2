package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"weft/topology"
)

// buildWeft builds the command of the module that this one replaces.
func (r *rig) buildWeft(ctx context.Context) error {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "weft").Output()
	if err != nil {
		return fmt.Errorf("find weft: %w; run this in bench/quic", err)
	}
	r.weft = filepath.Join(r.scratch, "weft")
	build := exec.CommandContext(ctx, "go", "build", "-o", r.weft, "./cmd/weft")
	build.Dir = strings.TrimSpace(string(dir))
	build.Stderr = os.Stderr
	return build.Run()
}

// withHosts runs f while weft host runs at both ends.
func (r *rig) withHosts(ctx context.Context, f func() error) error {
	for _, n := range []topology.Node{r.from, r.to} {
		stop, err := r.startHost(ctx, n)
		if err != nil {
			return err
		}
		defer stop()
	}
	time.Sleep(time.Second) // until probes have proved the carrier
	return f()
}

func (r *rig) startHost(ctx context.Context, n topology.Node) (stop func(), err error) {
	name := filepath.Join(r.scratch, n.Name)
	text := fmt.Sprintf("mode: offload\ntopology: %s\nuser: root\nstatus: %s.status\nresequence: true\nreceivers_resequence: true\ndatagrams: [%d]\n", r.lab.Config.Topology, name, port)
	if err := os.WriteFile(name+".yaml", []byte(text), 0o600); err != nil {
		return nil, err
	}
	os.Remove(name + ".notify")
	ready, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name + ".notify", Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	host := exec.CommandContext(ctx, "ip", "netns", "exec", r.lab.Namespace(n.ID), r.weft, "host", "--config", name+".yaml")
	host.Cancel = func() error { return host.Process.Signal(os.Interrupt) }
	host.Env = append(os.Environ(), "NOTIFY_SOCKET="+name+".notify")
	host.Stderr = os.Stderr
	if err := host.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		host.Process.Signal(os.Interrupt)
		host.Wait()
	}
	ready.SetReadDeadline(time.Now().Add(20 * time.Second))
	b := make([]byte, 4096)
	if k, err := ready.Read(b); err != nil || !strings.HasPrefix(string(b[:k]), "READY=1") {
		stop()
		return nil, errors.Join(err, fmt.Errorf("weft host of %s does not get ready", n.Name))
	}
	return stop, nil
}
