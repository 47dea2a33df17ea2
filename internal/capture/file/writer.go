// Package file writes captures as pcapng, and reads them. Each packet has a comment, a
// capture.Note. Interfaces are added as packets of them come.
package file

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"weft/internal/capture"
)

// Limits bound what is written. A zero is no bound, but for Files.
type Limits struct {
	Snap     int           // bytes of a packet that are kept
	Packets  uint64        // in all
	Bytes    int64         // of a file, before the next one begins; without Files the end
	Files    int           // how many are kept, the latest; 0: one, and Bytes is the end
	Duration time.Duration // of the capture, by the packets' times
}

// Writer writes a capture. It is not safe for concurrent use.
type Writer struct {
	open   func(number int) (io.WriteCloser, error)
	remove func(number int)
	limits Limits

	to         io.WriteCloser
	size       counter
	length     int64 // of the file, about, with what is buffered
	ng         *pcapgo.NgWriter
	number     int
	interfaces map[key]int
	dropped    map[string]uint64 // by interface
	stats      []ifaceStats
	first      time.Time
	last       time.Time
	packets    uint64
	bytes      int64 // of files before
	full       bool
}

// packetBlock is what a packet takes in a file besides its bytes and its comment, about.
const packetBlock = 32 + 4 + 8 + 4 + 4

// key is an interface of a capture: a point is one of its own.
type key struct {
	name string
	link capture.Link
}

type ifaceStats struct {
	key
	received uint64
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// NewWriter returns a Writer to w, in one piece. w is the caller's to close.
func NewWriter(w io.Writer, l Limits) *Writer {
	return &Writer{open: func(int) (io.WriteCloser, error) { return unclosed{w}, nil }, limits: l}
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// Create returns a Writer to a file. With several Limits.Files they are named with a number,
// as capture-00001.pcapng, and the oldest is removed. Only its owner may read a file, since it
// holds what others have sent.
func Create(name string, l Limits) (*Writer, error) {
	w := &Writer{limits: l}
	named := func(number int) string {
		if l.Files == 0 {
			return name
		}
		ext := filepath.Ext(name)
		return fmt.Sprintf("%s-%05d%s", strings.TrimSuffix(name, ext), number, ext)
	}
	w.open = func(number int) (io.WriteCloser, error) {
		return CreateOwn(named(number))
	}
	w.remove = func(number int) { os.Remove(named(number)) }
	return w, w.begin()
}

// CreateOwn creates a file, or empties one, that only its owner may read from then on. What is no
// regular file, such as a pipe, keeps its mode.
func CreateOwn(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && st.Mode().IsRegular() {
		if err = f.Chmod(0o600); err == nil {
			err = f.Truncate(0)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// begin opens the next file. What goes into it needs the names of interfaces again.
func (w *Writer) begin() (err error) {
	w.number++
	if w.to, err = w.open(w.number); err != nil {
		return err
	}
	w.size, w.length = counter{w: w.to}, 0
	w.interfaces, w.stats, w.ng = make(map[key]int), nil, nil
	if w.remove != nil && w.limits.Files > 0 && w.number > w.limits.Files {
		w.remove(w.number - w.limits.Files)
	}
	return nil
}

// Full reports whether a limit is reached: nothing more is written.
func (w *Writer) Full() bool { return w.full }

// Packets is how many were written.
func (w *Writer) Packets() uint64 { return w.packets }

// Bytes is how many were written, to all files.
func (w *Writer) Bytes() int64 { return w.bytes + w.size.n }

// Write writes a packet with its note, unless a limit is reached.
func (w *Writer) Write(r *capture.Record, n *capture.Note) error {
	if w.full {
		return nil
	}
	if w.first.IsZero() {
		w.first = r.At
	}
	if w.limits.Duration > 0 && r.At.Sub(w.first) > w.limits.Duration {
		w.full = true
		return nil
	}
	if w.to == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	b := r.Bytes
	if w.limits.Snap > 0 {
		b = b[:min(len(b), w.limits.Snap)]
	}
	id, err := w.iface(r)
	if err != nil {
		return err
	}
	w.last = r.At
	flags := &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound}
	if r.Out {
		flags.Direction = pcapgo.NgEpbFlagDirectionOutbound
	}
	info := gopacket.CaptureInfo{Timestamp: r.At, CaptureLength: len(b), Length: max(r.Length, len(b)), InterfaceIndex: id}
	comment := n.String()
	if err := w.ng.WritePacketWithOptions(info, b, pcapgo.NgPacketOptions{Comments: []string{comment}, Flags: flags}); err != nil {
		return err
	}
	w.length += int64(packetBlock + len(b) + len(comment))
	w.stats[id].received++
	w.packets++
	if w.limits.Packets > 0 && w.packets >= w.limits.Packets {
		w.full = true
	}
	return w.rotate()
}

// rotate begins the next file when this one is long enough.
func (w *Writer) rotate() error {
	if w.limits.Bytes == 0 || w.length < w.limits.Bytes {
		return nil
	}
	if w.limits.Files == 0 {
		w.full = true
		return nil
	}
	if err := w.finish(); err != nil {
		return err
	}
	return w.begin()
}

// iface returns the number of a record's interface in the file.
func (w *Writer) iface(r *capture.Record) (int, error) {
	k := key{r.Interface, r.Link}
	if id, ok := w.interfaces[k]; ok {
		return id, nil
	}
	link := layers.LinkTypeRaw
	if r.Link == capture.LinkEthernet {
		link = layers.LinkTypeEthernet
	}
	o := pcapgo.NgInterface{Name: k.name, OS: runtime.GOOS, LinkType: link, SnapLength: uint32(w.limits.Snap), TimestampResolution: 9,
		Description: descriptions[r.Point]}
	var id int
	var err error
	if w.ng == nil {
		w.ng, err = pcapgo.NewNgWriterInterface(&w.size, o, pcapgo.NgWriterOptions{
			SectionInfo: pcapgo.NgSectionInfo{Hardware: runtime.GOARCH, OS: runtime.GOOS, Application: "weft capture"}})
	} else {
		id, err = w.ng.AddInterface(o)
	}
	if err != nil {
		return 0, err
	}
	w.interfaces[k] = id
	w.stats = append(w.stats, ifaceStats{key: k})
	return id, nil
}

// descriptions are of the interfaces of points.
var descriptions = map[capture.Point]string{
	capture.PointDevice:    "a device of the kernel",
	capture.PointSent:      "what weft hands to its device",
	capture.PointArrived:   "what arrives, before the resequencer",
	capture.PointDelivered: "what the resequencer has let go",
}

// Dropped says how many packets of an interface were lost since the capture began. It goes into
// the file when that ends.
func (w *Writer) Dropped(iface string, n uint64) {
	if w.dropped == nil {
		w.dropped = make(map[string]uint64)
	}
	w.dropped[iface] = n
}

// addDropping adds the interfaces that have lost all their packets.
func (w *Writer) addDropping() error {
	for _, name := range slices.Sorted(maps.Keys(w.dropped)) {
		if w.dropped[name] == 0 || slices.ContainsFunc(w.stats, func(s ifaceStats) bool { return s.name == name }) {
			continue
		}
		if _, err := w.iface(&capture.Record{Interface: name}); err != nil {
			return err
		}
	}
	return nil
}

// Flush hands what is buffered to the file.
func (w *Writer) Flush() error {
	if w.ng == nil {
		return nil
	}
	return w.ng.Flush()
}

// finish ends a file.
func (w *Writer) finish() error {
	if w.to == nil {
		return nil
	}
	if err := w.addDropping(); err != nil {
		return err
	}
	if w.ng == nil { // a capture of nothing is a capture, too
		if _, err := w.iface(&capture.Record{Interface: "none"}); err != nil {
			return err
		}
	}
	for id, s := range w.stats {
		dropped := w.dropped[s.name]
		o := pcapgo.NgInterfaceStatistics{LastUpdate: w.last, StartTime: w.first, EndTime: w.last, PacketsReceived: s.received, PacketsDropped: dropped}
		if w.first.IsZero() {
			o = pcapgo.NgInterfaceStatistics{PacketsReceived: s.received, PacketsDropped: dropped}
		}
		if err := w.ng.WriteInterfaceStats(id, o); err != nil {
			return err
		}
	}
	if err := w.ng.Flush(); err != nil {
		return err
	}
	w.bytes += w.size.n
	w.size.n = 0
	err := w.to.Close()
	w.to = nil
	return err
}

// Close ends the capture.
func (w *Writer) Close() error {
	if w.to == nil && w.ng == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	return w.finish()
}
