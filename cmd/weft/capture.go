package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/capture"
	"weft/internal/capture/file"
	"weft/internal/capture/session"
	"weft/internal/capture/stream"
	"weft/internal/capture/tap"
	"weft/internal/config"
	"weft/topology"
)

// captureFlags are those of weft capture, weft capture read and weft lab capture.
type captureFlags struct {
	write, trace string
	hosts        []string
	ports        []uint
	flow         string
	kinds        []string
	tunnels      []uint
	snap         int
	count        uint64
	size         int64
	files        int
	duration     time.Duration
	topology     string
	json         bool
	quiet        bool
}

// add adds the flags that all three have.
func (f *captureFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.write, "write", "w", "", "write a pcapng `file`, - for standard output (default: print a line for each packet)")
	flags.StringVar(&f.trace, "trace", "", "write a `file` of Chrome's trace events: segments by path over time, holds, releases, retransmissions")
	flags.StringSliceVar(&f.hosts, "host", nil, "only packets from or to these `addresses`, the innermost ones")
	flags.UintSliceVar(&f.ports, "port", nil, "only packets from or to these `ports`")
	flags.StringVar(&f.flow, "flow", "", "only those of a `connection`, such as 10.0.0.2:40000-10.3.1.3:80")
	flags.StringSliceVar(&f.kinds, "kind", nil, "only packets of these `kinds`: data, ack, probe, sample, update, scheduler, feedback, icmp or other")
	flags.UintSliceVar(&f.tunnels, "tunnel-port", nil, "UDP `ports` of weft's tunnel")
	flags.IntVar(&f.snap, "snap", 0, "`bytes` of each packet that are kept (0: all, up to 64 KB of weft's own and 256 KB of a device's)")
	flags.Uint64Var(&f.count, "count", 0, "end after so many `packets`")
	flags.Int64Var(&f.size, "size", 0, "`bytes` of a file: the end, or with --files the next one begins")
	flags.IntVar(&f.files, "files", 0, "with --size, keep this `number` of files, the latest, named with a number")
	flags.BoolVar(&f.json, "json", false, "print JSON about the capture when it ends")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print no packets")
}

// check says which flag is wrong, and returns the filter.
func (f *captureFlags) check() (filter capture.Filter, err error) {
	switch {
	case f.snap < 0:
		return filter, usagef("--snap %d: must be 0 or more", f.snap)
	case f.size < 0:
		return filter, usagef("--size %d: must be 0 or more", f.size)
	case f.files < 0:
		return filter, usagef("--files %d: must be 0 or more", f.files)
	case f.files > 0 && f.size == 0:
		return filter, usagef("--files needs --size: how long a file may be, in bytes")
	case f.files > 0 && (f.write == "" || f.write == "-"):
		return filter, usagef("--files needs --write with the name of a file")
	case f.duration < 0:
		return filter, usagef("--duration %v: must be 0 or more", f.duration)
	case f.write == "-" && f.json:
		return filter, usagef("--json and --write=- both go to standard output: name a file with --write")
	}
	for _, h := range f.hosts {
		a, err := netip.ParseAddr(h)
		if err != nil {
			return filter, usagef("--host %s: is no address; give one such as 10.0.0.2", h)
		}
		filter.Hosts = append(filter.Hosts, a.Unmap())
	}
	for _, list := range []struct {
		flag  string
		ports []uint
		to    *[]uint16
	}{{"port", f.ports, &filter.Ports}, {"tunnel-port", f.tunnels, new([]uint16)}} {
		for _, p := range list.ports {
			if p == 0 || p > 65535 {
				return filter, usagef("--%s %d: must be 1 to 65535", list.flag, p)
			}
			*list.to = append(*list.to, uint16(p))
		}
	}
	if f.flow != "" {
		flow, err := capture.ParseFlow(f.flow)
		if err != nil {
			return filter, usagef("--%w", err)
		}
		filter.Flow = &flow
	}
	for _, k := range f.kinds {
		kind, err := capture.ParseKind(k)
		if err != nil {
			return filter, usagef("--%w", err)
		}
		filter.Kinds = append(filter.Kinds, kind)
	}
	return filter, nil
}

// annotator returns the Annotator of a fabric, which may be nil.
func (f *captureFlags) annotator(t *topology.Topology) *capture.Annotator {
	ports := make([]uint16, len(f.tunnels))
	for i, p := range f.tunnels {
		ports[i] = uint16(p)
	}
	return capture.NewAnnotator(capture.NewTopology(t), ports...)
}

// fabric reads --topology; nil if it is not given.
func (f *captureFlags) fabric() (*topology.Topology, error) {
	if f.topology == "" {
		return nil, nil
	}
	return config.Topology(f.topology)
}

// sink is where a capture goes.
type sink struct {
	f        *captureFlags
	out      io.Writer
	file     *file.Writer
	timeline *capture.Timeline
	printed  uint64
	first    time.Time
	shown    uint64
}

// open opens the files.
func (f *captureFlags) open(out io.Writer) (*sink, error) {
	s := &sink{f: f, out: out}
	limits := file.Limits{Snap: f.snap, Packets: f.count, Bytes: f.size, Files: f.files}
	switch f.write {
	case "":
	case "-":
		s.file = file.NewWriter(out, limits)
	default:
		var err error
		if s.file, err = file.Create(f.write, limits); err != nil {
			return nil, cannotWrite("write", f.write, err)
		}
	}
	if f.trace != "" {
		s.timeline = capture.NewTimeline()
		to, err := os.OpenFile(f.trace, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, cannotWrite("trace", f.trace, err)
		}
		to.Close()
	}
	return s, nil
}

// write takes a packet.
func (s *sink) write(r *capture.Record, n *capture.Note) (full bool, err error) {
	if s.timeline != nil {
		s.timeline.Add(r, n)
	}
	s.shown++
	if s.file != nil {
		err = s.file.Write(r, n)
		return s.file.Full(), err
	}
	if !s.f.quiet && !s.f.json && s.f.trace == "" {
		if s.first.IsZero() {
			s.first = r.At
		}
		_, err = fmt.Fprintln(s.out, packetLine(s.first, r, n))
	}
	return s.f.count > 0 && s.shown >= s.f.count, err
}

// tick hands what is buffered to the file, so that others can read along.
func (s *sink) tick() {
	if s.file != nil {
		s.file.Flush()
	}
}

// packetLine is a packet for people.
func packetLine(first time.Time, r *capture.Record, n *capture.Note) string {
	way := "<"
	if r.Out {
		way = ">"
	}
	what := fmt.Sprintf("%d bytes, not IP", r.Length)
	if n.IP {
		what = fmt.Sprintf("%s, %d bytes", n.Packet.Flow, r.Length)
		if n.Packet.IsTCP() {
			what = fmt.Sprintf("%s, seq %d, %d bytes", n.Packet.Flow, n.Packet.Seq, max(n.Packet.Payload, 0))
		}
	}
	return fmt.Sprintf("%12.6f %s %s %s %s", r.At.Sub(first).Seconds(), r.Interface, way, what, strings.TrimPrefix(n.String(), "weft: "))
}

// captureVersion rises when a key of captureJSON goes or comes to mean something else.
const captureVersion = 1

// captureJSON is what weft capture prints with --json.
type captureJSON struct {
	Version   int               `json:"version"` // captureVersion
	Seen      uint64            `json:"seen"`    // by all sources
	Matched   uint64            `json:"matched"` // the filter
	Written   uint64            `json:"written"` // packets, to the file
	Bytes     int64             `json:"bytes"`   // of all files
	Dropped   map[string]uint64 `json:"dropped"` // by source: lost for want of room
	Late      uint64            `json:"late"`    // written out of order, for want of room
	Forgotten uint64            `json:"forgotten"`
	Untraced  uint64            `json:"untraced"` // had no place in the timeline
	Notes     []string          `json:"notes"`    // what could not be captured, and why
}

// close ends a capture and says what became of it.
func (s *sink) close(errOut io.Writer, res session.Result, a *capture.Annotator, notes []string) error {
	j := captureJSON{Version: captureVersion, Seen: res.Seen, Matched: res.Matched, Dropped: res.Dropped, Late: res.Late, Forgotten: a.Forgotten(), Notes: append([]string{}, notes...)}
	for _, name := range res.Ended {
		j.Notes = append(j.Notes, name+" ended before the capture did: its later packets are missing")
	}
	if j.Dropped == nil {
		j.Dropped = make(map[string]uint64)
	}
	var failed error
	if s.file != nil {
		for name, n := range res.Dropped {
			s.file.Dropped(dropsOf(name), n)
		}
		failed = s.file.Close()
		j.Written, j.Bytes = s.file.Packets(), s.file.Bytes()
	}
	if s.timeline != nil {
		j.Untraced = s.timeline.Dropped()
		failed = errors.Join(failed, writeTrace(s.f.trace, s.timeline))
	}
	if s.f.json {
		return errors.Join(failed, printJSON(s.out, j))
	}
	for _, note := range j.Notes[len(notes):] {
		fmt.Fprintln(errOut, "note:", note)
	}
	line := fmt.Sprintf("%d packets seen, %d wanted", j.Seen, j.Matched)
	if s.file != nil {
		line += fmt.Sprintf(", %d written (%.1f MB)", j.Written, float64(j.Bytes)/1e6)
	}
	var lost uint64
	for _, name := range slices.Sorted(maps.Keys(j.Dropped)) {
		if n := j.Dropped[name]; n > 0 {
			lost += n
			line += fmt.Sprintf("; %s dropped %d", name, n)
		}
	}
	if lost == 0 {
		line += ", none dropped"
	}
	if j.Late > 0 {
		line += fmt.Sprintf("; %d out of order", j.Late)
	}
	fmt.Fprintln(errOut, line)
	return failed
}

// dropsOf is the interface of a file at which the drops of a source are written. The daemon counts
// those of its three together, and most are of what arrives.
func dropsOf(source string) string {
	if host, own := strings.CutSuffix(source, stream.Name); own && (host == "" || strings.HasSuffix(host, ":")) {
		return host + tap.Arrived
	}
	return source
}

func writeTrace(name string, t *capture.Timeline) error {
	to, err := file.CreateOwn(name)
	if err != nil {
		return cannotWrite("trace", name, err)
	}
	_, err = t.WriteTo(to)
	return errors.Join(err, to.Close())
}
