package file

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"weft/internal/capture"
)

var start = time.Date(2027, 1, 1, 0, 0, 0, 123456789, time.UTC)

// record is the i-th of a capture.
func record(i int) capture.Record {
	b := []byte{0x45, 0, 0, 20, 0, byte(i), 0, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}
	r := capture.Record{At: start.Add(time.Duration(i) * time.Millisecond), Interface: fmt.Sprintf("p%d", i%3), Out: i%2 == 0, Bytes: b, Length: 20 + i}
	switch i % 3 {
	case 1:
		r.Link, r.Bytes, r.Length = capture.LinkEthernet, append(make([]byte, 14), b...), 34
	case 2:
		r.Point, r.Hold, r.Cause = capture.PointDelivered, time.Duration(i)*time.Microsecond, "filled"
	}
	return r
}

func write(t *testing.T, w *Writer, n int) {
	t.Helper()
	a := capture.NewAnnotator(nil)
	for i := range n {
		r := record(i)
		note := a.Note(&r)
		if err := w.Write(&r, &note); err != nil {
			t.Fatal(err)
		}
	}
	w.Dropped("p1", 7)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// What is written is read again, with what the comments say and the drops.
func TestWriter_roundTrip(t *testing.T) {
	var b bytes.Buffer
	write(t, NewWriter(&b, Limits{}), 30)
	i := 0
	skipped, err := Read(bytes.NewReader(b.Bytes()), func(r *capture.Record) error {
		want := record(i)
		if !r.At.Equal(want.At) || r.Interface != want.Interface || r.Out != want.Out || !bytes.Equal(r.Bytes, want.Bytes) || r.Length != want.Length ||
			r.Link != want.Link || r.Point != want.Point || r.Hold != want.Hold || r.Cause != want.Cause {
			t.Errorf("packet %d is %+v, want %+v", i, r, want)
		}
		i++
		return nil
	})
	if err != nil || skipped != 0 || i != 30 {
		t.Errorf("%d packets, %d skipped, %v", i, skipped, err)
	}
	ng, err := pcapgo.NewNgReader(bytes.NewReader(b.Bytes()), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	for err == nil {
		_, _, err = ng.ReadPacketData()
	}
	for i := range ng.NInterfaces() {
		in, _ := ng.Interface(i)
		want := uint64(0)
		if in.Name == "p1" {
			want = 7
		}
		if in.Statistics.PacketsDropped != want || in.Statistics.PacketsReceived != 10 {
			t.Errorf("%s: %+v", in.Name, in.Statistics)
		}
	}
}

// Bounds: bytes of a packet, packets, time, files.
func TestWriter_isBounded(t *testing.T) {
	count := func(l Limits) (packets, longest int) {
		var b bytes.Buffer
		write(t, NewWriter(&b, l), 30)
		if _, err := Read(&b, func(r *capture.Record) error {
			packets, longest = packets+1, max(longest, len(r.Bytes))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return packets, longest
	}
	if n, longest := count(Limits{Packets: 12, Snap: 16}); n != 12 || longest != 16 {
		t.Errorf("%d packets of %d bytes", n, longest)
	}
	if n, _ := count(Limits{Duration: 9 * time.Millisecond}); n != 10 {
		t.Errorf("%d packets in 9 ms", n)
	}
	if n, _ := count(Limits{Bytes: 1000}); n == 0 || n == 30 {
		t.Errorf("%d packets in 1000 bytes", n)
	}
	name := filepath.Join(t.TempDir(), "ring.pcapng")
	w, err := Create(name, Limits{Bytes: 1000, Files: 2})
	if err != nil {
		t.Fatal(err)
	}
	write(t, w, 60)
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "*"))
	if len(files) != 2 || !strings.Contains(files[1], "ring-0") {
		t.Fatalf("files: %v", files)
	}
	last := -1
	for _, f := range files {
		in, err := os.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Read(in, func(r *capture.Record) error { last = int(r.At.Sub(start) / time.Millisecond); return nil }); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		in.Close()
	}
	if last != 59 || w.Packets() != 60 {
		t.Errorf("the last packet is %d of %d", last, w.Packets())
	}
	if st, err := os.Stat(files[0]); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("who may read: %v, %v", st.Mode(), err)
	}
}

func TestWriter_nothing(t *testing.T) {
	var b bytes.Buffer
	if err := NewWriter(&b, Limits{}).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(&b, func(*capture.Record) error { return errors.New("a packet") }); err != nil {
		t.Error(err)
	}
	if _, err := Read(strings.NewReader("no capture"), nil); err == nil || !strings.Contains(err.Error(), "pcapng") {
		t.Errorf("what is no capture: %v", err)
	}
}

// A file that all could read is its owner's alone before a packet is in it.
func TestCreate_ownersOnly(t *testing.T) {
	name := filepath.Join(t.TempDir(), "old.pcapng")
	if err := os.WriteFile(name, []byte(strings.Repeat("x", 9999)), 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := Create(name, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, w, 3)
	if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 || st.Size() > 2000 {
		t.Errorf("%v, %v", st, err)
	}
	before, err := os.Stat(os.DevNull)
	if err != nil {
		t.Skip(err)
	}
	f, err := CreateOwn(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if after, err := os.Stat(os.DevNull); err != nil || after.Mode() != before.Mode() {
		t.Errorf("a device has the mode %v now", after.Mode())
	}
}

// Drops of an interface of which no packet was written are in the file, too.
func TestWriter_allDropped(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, Limits{})
	w.Dropped("p9", 5)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ng, err := pcapgo.NewNgReader(&b, pcapgo.DefaultNgReaderOptions)
	for err == nil {
		_, _, err = ng.ReadPacketData()
	}
	if in, err := ng.Interface(0); err != nil || in.Name != "p9" || in.Statistics.PacketsDropped != 5 {
		t.Errorf("%+v, %v", in, err)
	}
}
