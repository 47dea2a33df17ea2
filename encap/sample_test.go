package encap

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func sample(t testing.TB, s Sample) []byte {
	t.Helper()
	b, err := AppendSample(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func someSample() Sample {
	return Sample{Path: 0x010203, Queue: 0x45, Meters: 6, Token: 0x1122334455667788, From: origin, To: target}
}

func TestAppendSample_bytesOnTheWire(t *testing.T) {
	probe := "4502003c00004000401125a8" + "0a000002" + "0a030103" + // IPv4, ECT(0)
		"24792479" + "0028" + "a728" + // UDP
		"77666c73" + "01020345" + "01060000" + "1122334455667788" + "0000000000000000" + "00000000"
	if got := hex.EncodeToString(sample(t, someSample())); got != probe {
		t.Errorf("got\n%s, want\n%s", got, probe)
	}
	s := someSample()
	s.ACK, s.Marked, s.Received = true, true, 0x0102030405060708
	got := hex.EncodeToString(sample(t, s))
	if want := "77666c73" + "010203c5" + "01060100" + "1122334455667788" + "0102030405060708" + "00000000"; got[2*28:] != want {
		t.Errorf("an answer's payload is\n%s, want\n%s", got[2*28:], want)
	}
}

func TestSample_roundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 2))
	for range 2000 {
		s := Sample{
			Path: rng.Uint32N(MaxSamplePath + 1), ACK: rng.IntN(2) == 0, Queue: uint8(rng.IntN(128)),
			Meters: uint8(rng.Uint32()), Token: rng.Uint64(),
			From: netip.AddrFrom4([4]byte{10, byte(rng.IntN(4)), 0, 2}),
			To:   netip.AddrFrom4([4]byte{10, byte(rng.IntN(4)), 1, 3}),
		}
		if s.ACK {
			s.Marked, s.Received = rng.IntN(2) == 0, time.Duration(rng.Uint64())
		}
		b := sample(t, s)
		if len(b) != SampleLen || !IsSample(b) || IsProbe(b) || !udpValid(b) || slowChecksum(b[:20]) != binary.BigEndian.Uint16(b[10:]) {
			t.Fatalf("%+v became %x", s, b)
		}
		if got, err := ParseSample(append(b, 0, 0)); err != nil || got != s {
			t.Fatalf("%+v came back as %+v, %v", s, got, err)
		}
	}
}

// A sum of zero must be sent as ffff, or it would stand for no checksum.
func TestSample_checksumIsNeverZero(t *testing.T) {
	s := someSample()
	made, mended := 0, 0
	for i := range uint64(1 << 16) {
		s.Token = i
		b := sample(t, s)
		if b[26] == 0xff && b[27] == 0xff {
			made++
		}
		AddQueue(b, 3)
		if b[26] == 0xff && b[27] == 0xff {
			mended++
		}
		if !udpValid(b) || b[26] == 0 && b[27] == 0 {
			t.Fatalf("token %#x: checksum %x", i, b[26:28])
		}
	}
	if made == 0 || mended == 0 {
		t.Fatal("no token had a sum of zero: the test shows nothing")
	}
}

func TestAppendSample_refuses(t *testing.T) {
	for field, change := range map[string]func(*Sample){
		"From":  func(s *Sample) { s.From = netip.IPv6Loopback() },
		"To":    func(s *Sample) { s.To = netip.Addr{} },
		"Path":  func(s *Sample) { s.Path = 1 << 24 },
		"Queue": func(s *Sample) { s.Queue = 128 },
	} {
		s := someSample()
		change(&s)
		if b, err := AppendSample([]byte{7}, s); err == nil || len(b) != 1 || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %x, %v", field, b, err)
		}
	}
}

func TestParseSample_refuses(t *testing.T) {
	set := func(i int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[i] = v; return mended(&sampleDatagram, b) }
	}
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   error
	}{
		"short":        {func(b []byte) []byte { return b[:SampleLen-1] }, ErrNotSample},
		"empty":        {func([]byte) []byte { return nil }, ErrNotSample},
		"IPv6":         {set(0, 0x65), ErrNotSample},
		"TCP":          {set(9, 6), ErrNotSample},
		"port":         {set(21, 0x7b), ErrNotSample},
		"longer":       {set(3, SampleLen+4), ErrNotSample},
		"fragment":     {set(7, 1), ErrNotSample},
		"magic":        {set(28, 0), ErrNotSample},
		"IP checksum":  {func(b []byte) []byte { b[8]--; return b }, ErrChecksum},
		"UDP checksum": {func(b []byte) []byte { b[45]++; return b }, ErrChecksum},
		"no checksum":  {func(b []byte) []byte { b[26], b[27] = 0, 0; return b }, ErrChecksum},
		"UDP length":   {set(25, 39), ErrTruncated},
		"version":      {set(36, 2), ErrSampleVersion},
	} {
		b := c.change(sample(t, someSample()))
		if s, err := ParseSample(b); !errors.Is(err, c.want) || s != (Sample{}) {
			t.Errorf("%s: %+v, %v; want %v", name, s, err, c.want)
		}
	}
	// What is 0 today may say something tomorrow.
	b := set(59, 9)(sample(t, someSample()))
	if s, err := ParseSample(b); err != nil || s != someSample() {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestAnswerSample_inPlace(t *testing.T) {
	for _, ecn := range []ECN{NotECT, ECT0, ECT1, CE} {
		b := sample(t, someSample())
		b[1] = b[1]&^ecnMask | byte(ecn)
		b[8] = 61
		fix(b)
		path, err := AnswerSample(b, 77*time.Second)
		if err != nil || path != 0x010203 {
			t.Fatalf("path %#x, %v", path, err)
		}
		want := someSample()
		want.ACK, want.Marked, want.Received = true, ecn == CE, 77*time.Second
		want.From, want.To = want.To, want.From
		if !bytes.Equal(b, sample(t, want)) {
			t.Errorf("%v: answer %x", ecn, b)
		}
		was := bytes.Clone(b)
		if _, err := AnswerSample(b, 1); err != ErrSampleType || !bytes.Equal(b, was) {
			t.Errorf("the answer to an answer: %v", err)
		}
	}
	b := sample(t, someSample())
	b[59]++
	was := bytes.Clone(b)
	if _, err := AnswerSample(b, 1); err != ErrChecksum || !bytes.Equal(b, was) {
		t.Errorf("%v", err)
	}
}

// outers are the headers that a switch may see a sample behind.
func outers(t testing.TB, inner []byte) map[string][]byte {
	t.Helper()
	wrap := func(b []byte) []byte {
		h, err := NewIPIP(origin, target)
		if err != nil {
			t.Fatal(err)
		}
		b = append(make([]byte, Overhead), b...)
		if err := h.Encapsulate(b, 9); err != nil {
			t.Fatal(err)
		}
		return b
	}
	six := make([]byte, 40)
	six[0], six[6], six[7] = 0x60, protoIPIP, 64
	binary.BigEndian.PutUint16(six[4:], uint16(len(inner)))
	return map[string][]byte{
		"none": bytes.Clone(inner), "one": wrap(inner), "two": wrap(wrap(inner)), "IPv6": append(six, inner...),
	}
}

func TestAddQueue_behindEveryOuterHeader(t *testing.T) {
	for name, b := range outers(t, sample(t, someSample())) {
		outer := bytes.Clone(b[:len(b)-SampleLen])
		if !AddQueue(b, 3) || !AddQueue(b, 0) || !AddQueue(b, -7) {
			t.Fatalf("%s: not known for a probe", name)
		}
		inner := b[len(b)-SampleLen:]
		want := someSample()
		want.Queue, want.Meters = want.Queue+3, want.Meters+3
		if s, err := ParseSample(inner); err != nil || s != want || !bytes.Equal(inner, sample(t, want)) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if !bytes.Equal(b[:len(b)-SampleLen], outer) {
			t.Errorf("%s: the outer header has changed", name)
		}
	}
}

func TestAddQueue_saturates(t *testing.T) {
	b := sample(t, someSample())
	sum := int(someSample().Queue)
	for i := range 300 {
		units := i % 4
		if i == 200 {
			units = 1 << 40
		}
		AddQueue(b, units)
		sum = min(sum+units, MaxQueue)
		s, err := ParseSample(b)
		if err != nil || int(s.Queue) != sum || int(s.Meters) != min(7+i, 255) || s.ACK || s.Path != someSample().Path {
			t.Fatalf("after %d: %+v, %v; want %d", i+1, s, err, sum)
		}
	}
}

func TestAddQueue_leavesTheRestAlone(t *testing.T) {
	ack := someSample()
	ack.ACK = true
	inner := sample(t, someSample())
	six := outers(t, inner)["IPv6"]
	six[6] = 17
	fragment := outers(t, inner)["one"]
	fragment[7] = 1
	three := outers(t, outers(t, inner)["two"])["one"]
	noSum := bytes.Clone(inner)
	for name, b := range map[string][]byte{
		"answer": sample(t, ack), "probe of life": probe(t, request()), "IPv6": six, "fragment": fragment,
		"three headers": three, "short": inner[:SampleLen-1], "empty": nil, "outer only": outers(t, inner)["IPv6"][:40],
	} {
		was := bytes.Clone(b)
		if AddQueue(b, 5) || !bytes.Equal(b, was) {
			t.Errorf("%s: %x", name, b)
		}
	}
	// A probe without a checksum keeps none.
	noSum[26], noSum[27] = 0, 0
	if !AddQueue(noSum, 5) || noSum[26] != 0 || noSum[27] != 0 {
		t.Errorf("%x", noSum)
	}
}

func TestSample_allocatesNothing(t *testing.T) {
	buf := make([]byte, 0, SampleLen)
	if n := testing.AllocsPerRun(100, func() {
		b, _ := AppendSample(buf, someSample())
		AddQueue(b, 4)
		if _, err := AnswerSample(b, 5); err != nil {
			t.Fatal(err)
		}
		if _, err := ParseSample(b); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzSample(f *testing.F) {
	ack := someSample()
	ack.ACK = true
	f.Add(sample(f, ack), 0)
	for _, b := range outers(f, sample(f, someSample())) {
		f.Add(b, 7)
	}
	f.Fuzz(func(t *testing.T, b []byte, units int) {
		s, err := ParseSample(b)
		if err == nil {
			again := sample(t, s)
			if got, err := ParseSample(again); err != nil || got != s {
				t.Fatalf("%+v became %+v, %v", s, got, err)
			}
			answer := bytes.Clone(b)
			if _, err := AnswerSample(answer, 1); (err == nil) == s.ACK {
				t.Fatalf("%+v is answered: %v", s, err)
			}
		}
		was := bytes.Clone(b)
		added := AddQueue(b, units)
		if !added && !bytes.Equal(b, was) {
			t.Fatalf("%x became %x", was, b)
		}
		if err != nil {
			return
		}
		if added == s.ACK {
			t.Fatalf("%+v: added %v", s, added)
		}
		if added {
			s.Queue = uint8(min(int(s.Queue)+min(max(units, 0), MaxQueue), MaxQueue))
			s.Meters = uint8(min(int(s.Meters)+1, 255))
			if got, err := ParseSample(b); err != nil || got != s {
				t.Fatalf("%+v, %v; want %+v", got, err, s)
			}
		}
	})
}
