// Package frr runs the daemons of FRR, as Debian has them, for one switch that is a network
// namespace of this machine. Several switches share neither files nor sockets: each has a
// directory, with its configuration, the daemons' process numbers and their sockets. Besides
// these there is a directory of each daemon in /var/tmp/frr, which Stop removes, too.
package frr

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	programs = "/usr/lib/frr" // where Debian has the daemons
	account  = "frr"          // the user that they run as
	crashes  = "/var/tmp/frr" // where each daemon makes a directory for what it says when it crashes

	configFile = "frr.conf"
	socketFile = "zserv.api"
)

// maxDir bounds the path of a switch's directory: the kernel takes 107 bytes for a socket's.
const maxDir = 107 - len("/staticd.vty")

// Switch is FRR at one switch. Its methods may be called by several threads, but those that
// change something only by one at a time.
type Switch struct {
	Dir string // of this switch alone; it is made, its parent must exist
	BFD bool   // bfdd runs, too
}

// Daemons are the names of the daemons that run, in the order of their start.
func (s Switch) Daemons() []string {
	if s.BFD {
		return []string{"zebra", "bfdd", "bgpd"}
	}
	return []string{"zebra", "bgpd"}
}

// Available returns nil if FRR is installed, otherwise what is missing.
func Available() error {
	for _, name := range []string{"zebra", "bgpd", "bfdd"} {
		if _, err := os.Stat(filepath.Join(programs, name)); err != nil {
			return fmt.Errorf("FRR is missing (%w): install Debian's package frr, or build a lab without BGP", err)
		}
	}
	if _, err := user.Lookup(account); err != nil {
		return fmt.Errorf("FRR: %w; Debian's package frr makes it", err)
	}
	return nil
}

// CheckDir makes sure that sockets in a directory have names that the kernel takes.
func CheckDir(dir string) error {
	if len(dir) > maxDir {
		return fmt.Errorf("directory %s of FRR has %d bytes, must have up to %d for the names of sockets in it: choose shorter names", dir, len(dir), maxDir)
	}
	return nil
}

// Start runs those daemons that do not run yet in the network namespace of the calling
// thread, configured with a text in FRR's language, and returns when they are ready. started
// names them. They outlive this process. It needs root.
func (s Switch) Start(config string) (started []string, err error) {
	if err := s.write(config); err != nil {
		return nil, fmt.Errorf("FRR: %w", err)
	}
	for _, name := range s.Daemons() {
		if s.process(name) != 0 {
			continue
		}
		if err := s.start(name); err != nil {
			return started, err
		}
		started = append(started, name)
	}
	return started, nil
}

// write makes the directory, which the daemons must be able to write to.
func (s Switch) write(config string) error {
	if err := CheckDir(s.Dir); err != nil {
		return err
	}
	owner, err := user.Lookup(account)
	if err != nil {
		return err
	}
	uid, err1 := strconv.Atoi(owner.Uid)
	gid, err2 := strconv.Atoi(owner.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if err := os.Mkdir(s.Dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	file := filepath.Join(s.Dir, configFile)
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return err
	}
	return errors.Join(os.Chown(s.Dir, uid, gid), os.Chown(file, uid, gid))
}

func (s Switch) start(name string) error {
	s.clear(name)
	// Not CommandContext: a daemon that is left alone half-way would not be found.
	c := exec.Command(filepath.Join(programs, name), "-d", "-f", filepath.Join(s.Dir, configFile),
		"-i", s.pidFile(name), "-z", filepath.Join(s.Dir, socketFile), "--vty_socket", s.Dir)
	if name == "bfdd" {
		c.Args = append(c.Args, "--bfdctl", filepath.Join(s.Dir, "bfdd.sock"))
	}
	out, err := os.CreateTemp(s.Dir, name+".out") // a pipe would be open as long as the daemon runs
	if err != nil {
		return fmt.Errorf("FRR: %w", err)
	}
	defer os.Remove(out.Name())
	defer out.Close()
	c.Stdout, c.Stderr = out, out
	err = c.Run()
	if c.Process != nil {
		target := filepath.Join(crashes, fmt.Sprintf("%s.%d", name, c.Process.Pid))
		if err := os.Symlink(target, s.crashLink(name)); err != nil {
			return fmt.Errorf("FRR: %w", err)
		}
	}
	if err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("FRR's %s: %w: %s", name, err, bytes.TrimSpace(said))
	}
	return nil
}

// crashLink leads to what a daemon leaves when it crashes.
func (s Switch) crashLink(name string) string { return filepath.Join(s.Dir, name+".crash") }

// clear removes what a daemon that has ended has left.
func (s Switch) clear(name string) {
	os.Remove(s.pidFile(name))
	if target, err := os.Readlink(s.crashLink(name)); err == nil && filepath.Dir(target) == crashes {
		os.RemoveAll(target)
	}
	os.Remove(s.crashLink(name))
}

func (s Switch) pidFile(name string) string { return filepath.Join(s.Dir, name+".pid") }

// process returns the number of a daemon's process, 0 if it does not run. FRR's daemons keep
// a lock on their file, so that another process cannot be taken for one.
func (s Switch) process(name string) int {
	f, err := os.OpenFile(s.pidFile(name), os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK}
	if syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock) != nil || lock.Type == syscall.F_UNLCK {
		return 0
	}
	return int(lock.Pid)
}

// Check returns nil if all daemons run, otherwise which one does not.
func (s Switch) Check() error {
	for _, name := range s.Daemons() {
		if s.process(name) == 0 {
			return fmt.Errorf("FRR's %s does not run; if it crashed, it says why in %s", name, s.crashLink(name))
		}
	}
	return nil
}

// endWait is far more than a killed process takes to end.
const endWait = 5 * time.Second

// Stop kills the daemons, those of BFD too, and removes the directory when they have ended.
// They have no time to say so to their neighbours or to take routes back. It is no error if
// there are none.
func (s Switch) Stop() error {
	for _, name := range []string{"bgpd", "bfdd", "zebra"} {
		for end := time.Now().Add(endWait); ; time.Sleep(time.Millisecond) {
			pid := s.process(name)
			if pid == 0 {
				break
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("FRR's %s, process %d: %w", name, pid, err)
			}
			if time.Now().After(end) {
				return fmt.Errorf("FRR's %s, process %d, does not end", name, pid)
			}
		}
		s.clear(name)
	}
	return os.RemoveAll(s.Dir)
}

// Show runs commands of FRR's shell at the switch, in whatever network namespace, and
// returns what they print.
func (s Switch) Show(commands ...string) ([]byte, error) {
	args := []string{"--vty_socket", s.Dir}
	for _, c := range commands {
		args = append(args, "-c", c)
	}
	c := exec.Command("vtysh", args...)
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("vtysh %s: %w: %s", strings.Join(commands, "; "), err, bytes.TrimSpace(out))
	}
	return out, nil
}

// CheckConfig returns what FRR has against a configuration, nil if nothing.
func CheckConfig(config string) error {
	dir, err := os.MkdirTemp("", "weft-frr")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "frr.conf")
	// vtysh complains of a vtysh.conf that it may not read, as root's is.
	if err := errors.Join(os.WriteFile(file, []byte(config), 0o600), os.WriteFile(filepath.Join(dir, "vtysh.conf"), nil, 0o600)); err != nil {
		return err
	}
	out, err := exec.Command("vtysh", "--config_dir", dir, "-C", "-f", file).CombinedOutput()
	if err != nil || len(out) > 0 {
		return fmt.Errorf("vtysh refuses the configuration: %v: %s", err, out)
	}
	return nil
}
