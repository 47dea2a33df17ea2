package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"tailscale.com/client/local"
)

// What a service's unit has in PORT, and the address of counters and profiles. Both are in a
// network namespace of ours.
const (
	udpPort      = "41641"
	debugAddress = "127.0.0.1:41642"
)

// daemon is a tailscaled that runs.
type daemon struct {
	cmd    *exec.Cmd
	client *local.Client
	log    tail
	alive  *os.File   // tailscaled ends when this does, whatever this process dies of
	ended  chan error // gets what Wait says
}

// startDaemon starts tailscaled with the flags of its service, its files in dir, and without its
// logs going anywhere.
func startDaemon(program, dir string) (*daemon, error) {
	alive, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer alive.Close()
	d := &daemon{alive: ours, ended: make(chan error, 1)}
	d.client = &local.Client{Socket: filepath.Join(dir, "tailscaled.sock"), UseSocketOnly: true}
	d.cmd = exec.Command(program, "--statedir="+dir, "--socket="+d.client.Socket, "--port="+udpPort, "--debug="+debugAddress, "--no-logs-no-support")
	d.cmd.Env = append(firewall(), "PATH="+os.Getenv("PATH"), "HOME="+dir, "TMPDIR="+dir,
		"TS_NO_LOGS_NO_SUPPORT=true", "TS_LOGS_DIR="+dir, "TS_PARENT_DEATH_FD=3",
		// The machine's resolver and network manager are none of a namespace's business.
		"DBUS_SYSTEM_BUS_ADDRESS=unix:path="+filepath.Join(dir, "no-bus"),
		"XTABLES_LOCKFILE="+filepath.Join(dir, "xtables.lock"))
	d.cmd.ExtraFiles = []*os.File{alive}
	d.cmd.Stdout, d.cmd.Stderr = &d.log, &d.log
	started := make(chan error)
	go func() {
		// The thread is not for other goroutines any more: it ends with this one.
		runtime.LockOSThread()
		if err := confine(dir); err != nil {
			started <- err
			return
		}
		err := d.cmd.Start()
		started <- err
		if err == nil {
			d.ended <- d.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		ours.Close()
		return nil, fmt.Errorf("start tailscaled: %w", err)
	}
	return d, nil
}

// firewall is the setting of the kind of firewall rules: tailscaled's own choice, unless that
// is the old iptables, which leaves behind what slows down all that runs later.
func firewall() []string {
	out, _ := exec.Command("iptables", "--version").Output() // without iptables tailscaled takes nftables itself
	if bytes.Contains(out, []byte("legacy")) {
		return []string{"TS_DEBUG_FIREWALL_MODE=nftables"}
	}
	return nil
}

// stopLimit is more than tailscaled takes to clean up after itself.
const stopLimit = 10 * time.Second

// stop ends the daemon, which takes its device, routes and rules away.
func (d *daemon) stop() error {
	defer d.alive.Close()
	d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case err := <-d.ended:
		if err != nil {
			return d.explain(fmt.Errorf("tailscaled: %w", err))
		}
		return nil
	case <-time.After(stopLimit):
		d.cmd.Process.Kill()
		<-d.ended
		return d.explain(fmt.Errorf("tailscaled did not end within %v", stopLimit))
	}
}

// explain adds the last of tailscaled's log to an error.
func (d *daemon) explain(err error) error {
	return errors.Join(err, fmt.Errorf("the last that tailscaled says: %s", &d.log))
}

// tail keeps the last of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const maxTail = 2 << 10

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
