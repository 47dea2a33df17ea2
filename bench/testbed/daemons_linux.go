package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"weft/bench/child"
	"weft/lab"
	"weft/topology"
)

// DaemonHost is a host of a lab whose kernel's TCP is measured.
type DaemonHost struct {
	ID      topology.NodeID // in the lab
	Name    string
	Address netip.Addr // that TCP uses
	Config  string     // of weft host, YAML; "": none runs
}

// Daemons is a running weft host at each host of a lab. The caller closes the session first.
type Daemons struct {
	Hosts []DaemonHost
	lab   *lab.Lab
	argv  []string // weft
	env   []string
	dir   *child.Dir // of configurations and logs
	run   []*child.Process
}

// daemonsLimit is how long all daemons may take until they carry packets.
const daemonsLimit = 60 * time.Second

// StartDaemons runs argv, which is weft with env, as weft host at all hosts that have a
// configuration. It returns when each carries packets (Await). On an error nothing runs.
func StartDaemons(ctx context.Context, l *lab.Lab, hosts []DaemonHost, argv, env []string) (*Daemons, error) {
	dir, err := child.TempDir("weft-hosts-")
	if err != nil {
		return nil, err
	}
	d := &Daemons{Hosts: hosts, lab: l, argv: argv, env: env, dir: dir}
	for _, h := range hosts {
		if h.Config == "" {
			continue
		}
		if err := d.start(h); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", h.Name, err), d.Close())
		}
	}
	if err := d.Await(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Await waits until each daemon carries packets, of the family of its host's address, to
// all racks: none goes plain for want of proof.
func (d *Daemons) Await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, daemonsLimit)
	defer cancel()
	for _, h := range d.Hosts {
		if h.Config == "" {
			continue
		}
		if err := d.await(ctx, h); err != nil {
			return fmt.Errorf("%s: %w; weft host says\n%s", h.Name, err, d.says(h))
		}
	}
	return nil
}

// command is weft with arguments.
func (d *Daemons) command(args ...string) *exec.Cmd {
	c := exec.Command(d.argv[0], append(d.argv[1:len(d.argv):len(d.argv)], args...)...)
	c.Env = d.env
	return c
}

func (d *Daemons) start(h DaemonHost) error {
	file := filepath.Join(d.dir.Path, h.Name+".yaml")
	if err := os.WriteFile(file, []byte(h.Config), 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(d.dir.Path, h.Name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	c := d.command("host", "--config", file)
	c.Stdout, c.Stderr = log, log
	p, err := child.Start(d.lab.Namespace(h.ID), c)
	if err != nil {
		return err
	}
	d.run = append(d.run, p)
	return nil
}

func (d *Daemons) says(h DaemonHost) string {
	b, _ := os.ReadFile(filepath.Join(d.dir.Path, h.Name+".log"))
	return string(b)
}

// await waits until a daemon carries packets.
func (d *Daemons) await(ctx context.Context, h DaemonHost) error {
	for {
		why, err := d.lacks(h)
		if err != nil || why == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("within %v: %s", daemonsLimit, why)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Status is what weft status --json says at a host.
func (d *Daemons) Status(h DaemonHost) (out []byte, err error) {
	c := d.command("status", "--json")
	err = d.lab.Do(h.ID, func() (err error) { out, err = c.Output(); return err })
	if err != nil {
		return nil, fmt.Errorf("%s: weft status: %w", h.Name, err)
	}
	return out, nil
}

// lacks says why a daemon does not carry all packets, "" if it does.
func (d *Daemons) lacks(h DaemonHost) (why string, err error) {
	var out []byte
	c := d.command("status", "--json")
	// What fails is that nobody listens yet.
	if d.lab.Do(h.ID, func() error { out, err = c.Output(); return nil }); err != nil {
		return "no status", nil
	}
	var s struct {
		State    string
		Address6 string
		Racks    []struct {
			Rack, Why string
			Plain     bool
		}
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return "", fmt.Errorf("weft status --json: %w", err)
	}
	if s.State != "working" {
		return "state " + s.State, nil
	}
	if h.Address.Is6() && s.Address6 == "" {
		return "carries no IPv6", nil
	}
	for _, r := range s.Racks {
		if r.Plain {
			return fmt.Sprintf("packets to %s go plain: %s", r.Rack, r.Why), nil
		}
	}
	return "", nil
}

// Session has the TCP of the hosts' kernels. It counts retransmissions, and no links.
func (d *Daemons) Session() (*Session, error) {
	return kernelSession(d.lab, d.Hosts, kernelHost{congestion: congestionControl}, func() ([]LinkBytes, error) { return nil, nil })
}

// Close ends the daemons.
func (d *Daemons) Close() error {
	var errs []error
	for _, p := range d.run {
		errs = append(errs, p.Signal(syscall.SIGTERM))
	}
	for _, p := range d.run {
		errs = append(errs, p.Wait())
	}
	return errors.Join(append(errs, d.dir.Remove())...)
}
