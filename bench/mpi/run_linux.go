package mpi

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weft/bench/testbed"
	"weft/lab"
	"weft/topology"
)

//go:embed program/rounds.c
var source []byte

// congestionControl is what all ranks' connections use, as in weft's other benchmarks.
const congestionControl = "cubic"

// Options say what ranks do. There is a rank at each host, by number.
type Options struct {
	Pattern string // one of Patterns
	Bytes   int    // that a rank sends in a round, at least 4 for each rank
	By      int    // shift: how many places on the receiver is, from 1 to the ranks less one
	Rounds  int
	Limit   time.Duration // of all rounds together, and of OpenMPI's own start
}

// Program is the compiled program of the ranks, with OpenMPI around it.
type Program struct{ dir string }

// Build compiles the program. The caller calls Remove.
func Build(ctx context.Context) (*Program, error) {
	for _, tool := range []string{"mpicc", "mpirun", "nsenter", "nice"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%s is missing: install OpenMPI (on Debian: apt install openmpi-bin libopenmpi-dev gcc)", tool)
		}
	}
	dir, err := os.MkdirTemp("", "weft-mpi-")
	if err != nil {
		return nil, err
	}
	p := &Program{dir}
	file := filepath.Join(dir, "rounds.c")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return nil, errors.Join(err, p.Remove())
	}
	if out, err := exec.CommandContext(ctx, "mpicc", "-O2", "-o", filepath.Join(dir, "rounds"), file).CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("mpicc: %w: %s", err, out), p.Remove())
	}
	return p, nil
}

// Remove removes the program.
func (p *Program) Remove() error { return os.RemoveAll(p.dir) }

// Result is what a run of the program took.
type Result struct {
	Rounds []time.Duration // until the last rank had done
	CPU    time.Duration   // processor time of all ranks, which poll while they wait
}

// Run runs the program at all hosts of a lab. One round more comes before the first, in which
// ranks connect. Ranks have the lowest priority, so that what they poll with is what all other
// programs leave.
func (p *Program) Run(ctx context.Context, l *lab.Lab, t *topology.Topology, o Options) (r Result, err error) {
	agent, err := p.agent(l, t)
	if err != nil {
		return r, err
	}
	var hosts []string
	for n := range t.Hosts() {
		hosts = append(hosts, n.Addr.String()+":1")
	}
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	c := exec.CommandContext(ctx, "mpirun", "--allow-run-as-root", "-np", strconv.Itoa(len(hosts)), "-H", strings.Join(hosts, ","),
		"--bind-to", "none", "--leave-session-attached", "--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1",
		"--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", testbed.Uplink, "--mca", "oob_tcp_if_include", testbed.Uplink,
		"--mca", "mpi_yield_when_idle", "1", // ranks that wait poll, and share this machine's processors
		filepath.Join(p.dir, "rounds"), o.Pattern, strconv.Itoa(o.Bytes), strconv.Itoa(o.By), strconv.Itoa(o.Rounds), congestionControl)
	c.Env = append(os.Environ(), "TMPDIR="+p.dir)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // it ends the ranks
	c.WaitDelay = 5 * time.Second
	var out, problems bytes.Buffer
	c.Stdout, c.Stderr = &out, &problems
	if err := l.Do(0, c.Start); err != nil {
		return r, err
	}
	if err := c.Wait(); err != nil {
		return r, fmt.Errorf("mpirun: %w: %s", errors.Join(err, ctx.Err()), &problems)
	}
	// Ranks and OpenMPI's daemons are children of mpirun (--leave-session-attached).
	r.CPU = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	r.Rounds, err = parse(out.String(), o.Rounds)
	return r, err
}

// agent writes what mpirun calls in place of ssh: it runs a command in the namespace of a host,
// which has a folder for temporary files of its own.
func (p *Program) agent(l *lab.Lab, t *topology.Topology) (string, error) {
	var s strings.Builder
	fmt.Fprintf(&s, "#!/bin/sh\nhost=$1\nshift\nexport TMPDIR=%s/$host\nmkdir -p \"$TMPDIR\"\ncase $host in\n", p.dir)
	for n := range t.Hosts() {
		fmt.Fprintf(&s, "%s) exec nice -n 19 nsenter --net=/run/netns/%s sh -c \"$*\";;\n", n.Addr, l.Namespace(n.ID))
	}
	fmt.Fprint(&s, "esac\necho \"no host $host\" >&2\nexit 1\n")
	file := filepath.Join(p.dir, "agent")
	return file, os.WriteFile(file, []byte(s.String()), 0o700)
}
