package switchd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/topology"
)

// runDir has the sockets for weft status.
const runDir = "/run/weft"

// StatusSocket is where the agent of the calling thread's network namespace
// answers when the configuration says nothing else.
func StatusSocket() (string, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return "", fmt.Errorf("network namespace: %w", err)
	}
	return filepath.Join(runDir, fmt.Sprintf("switch-%d.sock", st.Ino)), nil
}

// Run is weft switch: it runs an agent as a configuration file says until a
// signal or the context ends it. SIGHUP makes it read the keys of the file again.
// All threads of the process must be in one network namespace. messages, a line
// each, go to log.
func Run(ctx context.Context, name string, signals <-chan os.Signal, messages io.Writer) error {
	f, err := Load(name)
	if err != nil {
		return err
	}
	self, err := f.self()
	if err != nil {
		return err
	}
	d := &daemon{name: name, file: f, log: log.New(messages, "", 0)}
	start := time.Now()
	c := f.config(self, start)
	if f.Configure {
		if err := d.configure(c); err != nil {
			return err
		}
	}
	if d.agent, err = Start(c); err != nil {
		return err
	}
	defer d.agent.Close()
	d.start = start
	socket, err := d.listen()
	if err != nil {
		return err
	}
	if socket != nil {
		defer socket.Close()
	}
	ready(fmt.Sprintf("%s of %s", f.fabric.Node(self).Name, f.fabric))
	d.log.Printf("%s of %s: %d ports, hellos every %v", f.fabric.Node(self).Name, f.fabric, len(d.agent.names), f.Hello)
	return d.serve(ctx, signals)
}

// daemon is a run.
type daemon struct {
	name  string
	file  *File
	log   *log.Logger
	agent *Agent
	start time.Time // of the clock that the keys' times are on
}

// self finds the switch in the fabric.
func (f *File) self() (topology.NodeID, error) {
	if f.Node != "" {
		n, err := f.fabric.Lookup(f.Node)
		return n.ID, err
	}
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return 0, err
	}
	addrs, err := lo.Addrs()
	if err != nil {
		return 0, err
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if id, ok := f.fabric.ByAddr(p.Addr()); ok && f.fabric.Node(id).Layer != topology.LayerHost {
			return id, nil
		}
	}
	return 0, f.lines.Errorf("node", "%w", errNode)
}

// configure sets the switch up as planned.
func (d *daemon) configure(c Config) error {
	plan, err := c.plan(c.Topology)
	if err != nil {
		return err
	}
	report, err := fabric.Apply(plan)
	if err != nil {
		return err
	}
	for _, note := range report.Notes {
		d.log.Print("note: ", note)
	}
	return nil
}

// listen opens the status socket, in the place of one that a crash left.
func (d *daemon) listen() (io.Closer, error) {
	path := d.file.Status
	if path == statusOff {
		return nil, nil
	}
	if path == "" {
		var err error
		if path, err = StatusSocket(); err == nil {
			err = os.MkdirAll(runDir, 0o755)
		}
		if err != nil {
			return nil, d.file.lines.Errorf("status", "%w", err)
		}
	}
	if st, err := os.Lstat(path); err == nil && st.Mode().Type() == os.ModeSocket {
		os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err == nil {
		if err = os.Chmod(path, 0o666); err != nil { // counters are no secret
			l.Close()
		}
	}
	if err != nil {
		return nil, d.file.lines.Errorf("status", "%w", err)
	}
	go answer(l, d.agent.Status)
	return l, nil
}

func (d *daemon) serve(ctx context.Context, signals <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.agent.Done():
			return fmt.Errorf("the agent has ended: %w", d.agent.Err())
		case s := <-signals:
			if s != syscall.SIGHUP {
				d.log.Printf("%v: stopping", s)
				return nil
			}
			if err := d.reload(); err != nil {
				d.log.Printf("reload refused, all stays as it is: %v", err)
			} else {
				d.log.Printf("reloaded: %d keys", len(d.file.Keys))
			}
		}
	}
}

var errRestart = errors.New("only keys and accept_unsigned can change while the agent runs; restart it (systemctl restart weft-switch), which costs no link")

// reload reads the keys again.
func (d *daemon) reload() error {
	next, err := Load(d.name)
	if err != nil {
		return err
	}
	if !d.file.sameButKeys(next) {
		return fmt.Errorf("%s: %w", d.name, errRestart)
	}
	if err := d.agent.SetKeys(next.keys(d.start)); err != nil {
		return err
	}
	d.file = next
	return nil
}

// ready tells systemd that the agent runs (sd_notify(3)).
func ready(status string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	conn, err := net.Dial("unixgram", name)
	if err != nil {
		return
	}
	defer conn.Close()
	conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	conn.Write([]byte("READY=1\nSTATUS=" + status))
}
