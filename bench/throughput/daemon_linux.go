package throughput

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weft/internal/daemon"
	"weft/internal/service"
	"weft/liveness"
)

// daemonized is the kernel's TCP with weft host beside it at both ends, by a
// configuration.
func daemonized(config ...string) way {
	return way{
		supports: needTUN,
		helper:   startCarrier,
		carry:    func(s site) (*host, error) { return runDaemon(s, config) },
		open:     kernelTCP.open,
	}
}

// runDaemon runs what weft host runs, in this process, and returns when it is
// ready. To drop privileges the process begins anew on the way.
func runDaemon(s site, config []string) (*host, error) {
	name := filepath.Join(s.scratch, s.topology.Node(s.self).Name)
	lines := append([]string{"topology: " + s.topology.String(), "status: " + name + ".status", "user: root"}, config...)
	if err := os.WriteFile(name+".yaml", []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return nil, err
	}
	os.Remove(name + ".notify")
	ready, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name + ".notify", Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	if err := os.Setenv("NOTIFY_SOCKET", name+".notify"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- daemon.Run(ctx, name+".yaml", nil, os.Stderr)
		ready.Close()
	}()
	stop := func() error {
		cancel()
		return <-ended
	}
	if err := waitReady(ready); err != nil {
		return nil, errors.Join(err, stop())
	}
	return &host{
		retransmits: func() (uint64, error) { return 0, nil },
		plain:       func() (bool, uint64, error) { return askPlain(ctx, name+".status", s.topology.Node(s.peer).Addr) },
		close:       stop,
	}, nil
}

// askPlain asks a daemon whether packets to an address go plain, and how often it has
// given a carrier up.
func askPlain(ctx context.Context, socket string, to netip.Addr) (now bool, givenUp uint64, err error) {
	text, err := service.AskStatus(ctx, socket, "the case's daemon")
	if err != nil {
		return false, 0, err
	}
	var s struct {
		Racks    []daemon.RackStatus `json:"racks"`
		Failures struct {
			Probes struct {
				Watcher liveness.Stats `json:"watcher"`
			} `json:"probes"`
		} `json:"failures"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return false, 0, fmt.Errorf("status: %w", err)
	}
	for _, r := range s.Racks {
		if p, err := netip.ParsePrefix(r.Prefix); err == nil && p.Contains(to) {
			now = r.Plain
		}
	}
	return now, s.Failures.Probes.Watcher.GivenUp, nil
}

// readyLimit is more than a daemon takes to set up a host.
const readyLimit = 10 * time.Second

// waitReady waits for sd_notify(3)'s word.
func waitReady(socket *net.UnixConn) error {
	socket.SetReadDeadline(time.Now().Add(readyLimit))
	b := make([]byte, 4096)
	n, err := socket.Read(b)
	if err != nil {
		return fmt.Errorf("the daemon does not get ready: %w", err)
	}
	if !strings.HasPrefix(string(b[:n]), "READY=1") {
		return fmt.Errorf("the daemon says %q", b[:n])
	}
	return nil
}

// startCarrier starts a Worker that runs the case's carry.
func startCarrier(ctx context.Context, b *bench, c Case, s site) (*process, error) {
	var p *process
	_, err := b.work(ctx, c, &p, job{Self: s.self, Peer: s.peer, Carry: true})
	if err != nil && p != nil {
		err = errors.Join(err, p.stop())
	}
	return p, err
}
