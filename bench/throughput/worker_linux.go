package throughput

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"

	"golang.org/x/sys/unix"

	"weft/topology"
)

// Worker is the process of one end. It takes commands from in, writes answers to out, and
// returns when in ends, after it has removed everything that it set up. The process must
// be in the network namespace of its host. Run passes the job as an argument of the
// program (Options.Worker), not by in, since a daemon that drops privileges starts again
// with its arguments.
func Worker(job string, in io.Reader, out io.Writer) (err error) {
	lines, answers := bufio.NewScanner(in), json.NewEncoder(out)
	w, err := newWorker(job)
	if err != nil {
		return answers.Encode(report{Error: err.Error()})
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := answers.Encode(w.report(nil)); err != nil {
		return err
	}
	for lines.Scan() {
		r := w.answer(lines.Text())
		if lines.Text() == cmdPlain {
			w.reportPlain(&r)
		}
		if err := answers.Encode(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

type worker struct {
	host      *host
	stream    *stream
	responder io.Closer // nil without
	address   string    // that the receiver listens on
	target    string    // the sender's
	profile   string    // file, "" for none
	profiling *os.File
}

func newWorker(text string) (*worker, error) {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return nil, fmt.Errorf("job: %w; weft bench throughput starts this", err)
	}
	cases, err := Select([]string{j.Case})
	if err != nil {
		return nil, err
	}
	t, err := topology.Parse(j.Topology)
	if err != nil {
		return nil, err
	}
	w := &worker{profile: j.Profile}
	at := site{t, j.Self, j.Peer, j.Scratch}
	if j.Carry {
		w.stream = &stream{close: func() error { return nil }}
		w.host, err = cases[0].carry(at)
		return w, err
	}
	if w.host, err = cases[0].open(at); err != nil {
		return nil, err
	}
	if err := w.connect(&j); err != nil {
		w.host.close()
		return nil, err
	}
	return w, nil
}

// connect dials the target or, if there is none, listens.
func (w *worker) connect(j *job) (err error) {
	n := max(j.Connections, 1)
	if w.target = j.Target; w.target != "" {
		w.stream, err = sender(w.host, w.target, n)
		return err
	}
	if j.Respond {
		if w.responder, err = respond(w.host); err != nil {
			return err
		}
	}
	l, err := w.host.Listen("tcp", net.JoinHostPort(w.host.address.String(), "5001"))
	if err != nil {
		return err
	}
	w.stream, w.address = receiver(l, n), l.Addr().String()
	return nil
}

func (w *worker) close() error {
	err := w.stream.close()
	if w.responder != nil {
		err = errors.Join(err, w.responder.Close())
	}
	return errors.Join(err, w.host.close())
}

// answer carries out a command.
func (w *worker) answer(command string) report {
	switch words := strings.Fields(command); words[0] {
	case cmdLatency, cmdAnew:
		l, anew, err := w.request(words)
		r := w.report(err)
		r.Latency, r.Anew = l, anew
		return r
	}
	return w.report(w.do(command))
}

func (w *worker) do(command string) error {
	switch command {
	case cmdStart:
		w.stream.start()
		return nil
	case cmdCount:
		return errors.Join(w.stream.err(), w.profileBetween())
	case cmdPlain:
		return nil
	case cmdFinish:
		return w.stream.finish()
	}
	return fmt.Errorf("command %q: unknown", command)
}

// profileBetween begins a profile the first time and ends it the second.
func (w *worker) profileBetween() (err error) {
	switch {
	case w.profiling != nil:
		pprof.StopCPUProfile()
		err = w.profiling.Close()
		w.profiling = nil
	case w.profile != "":
		if w.profiling, err = os.Create(w.profile); err != nil {
			return err
		}
		w.profile = ""
		err = pprof.StartCPUProfile(w.profiling)
	}
	return err
}

func (w *worker) report(failed error) report {
	r := report{Address: w.address, Bytes: w.stream.bytes.Load()}
	var err error
	r.Retransmits, err = w.host.retransmits()
	failed = errors.Join(failed, err, r.measureProcess())
	if failed != nil {
		r.Error = failed.Error()
	}
	return r
}

// reportPlain fills in how the host's carrier does.
func (w *worker) reportPlain(r *report) {
	if w.host.plain == nil {
		return
	}
	var err error
	if r.Plain, r.GivenUp, err = w.host.plain(); err != nil {
		r.Error = err.Error()
	}
}

// measureProcess fills in the time and what the process has used.
func (r *report) measureProcess() error {
	var now unix.Timespec
	var use unix.Rusage
	err := errors.Join(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now), unix.Getrusage(unix.RUSAGE_SELF, &use))
	if err != nil {
		return err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.Nanos, r.Mallocs = now.Nano(), m.Mallocs
	r.CPUNanos = use.Utime.Nano() + use.Stime.Nano()
	return nil
}
