// Package tsharktest checks what packaging/wireshark/weft.lua has tshark say of packets. It is
// for tests.
package tsharktest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// Packet is an IP packet, and what tshark is to say of it: fields, several values separated by
// commas. Fields that are not there must not be said, if another packet has them.
type Packet struct {
	IP   []byte
	Cut  int // bytes at the end that are not captured
	Want map[string]string
}

// TunnelPort is the port at which tshark is told that there is a tunnel.
const TunnelPort = 9400

// Script is the path of the dissector.
func Script() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "../../packaging/wireshark/weft.lua")
}

// Require skips a test where there is no tshark.
func Require(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Skip("tshark is missing: apt-get install tshark")
	}
}

// Run runs tshark with the dissector on a capture and returns the lines that it prints.
func Run(t testing.TB, file string, args ...string) []string {
	t.Helper()
	Require(t)
	cmd := exec.Command("tshark", append([]string{"-n", "-X", "lua_script:" + Script(), "-o", fmt.Sprintf("weft.ports:%d", TunnelPort), "-r", file}, args...)...)
	// Of a user's own settings nothing counts.
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	for line := range strings.Lines(said.String()) {
		if !strings.Contains(line, "Running as user") && strings.TrimSpace(line) != "" {
			t.Errorf("tshark says: %s", line)
		}
	}
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	if out.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// always is asked of each packet, and must be empty.
var always = []string{"weft.undissected", "_ws.malformed", "_ws.lua.error"}

// Check has one tshark look at all packets, and compares what it says with what is wanted.
func Check(t testing.TB, packets []Packet) {
	t.Helper()
	Require(t)
	name := filepath.Join(t.TempDir(), "packets.pcapng")
	write(t, name, packets)
	seen := make(map[string]bool)
	for _, p := range packets {
		for k := range p.Want {
			seen[k] = true
		}
	}
	var keys []string
	for k := range seen {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	keys = append(keys, always...)
	args := []string{"-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"}
	for _, k := range keys {
		args = append(args, "-e", k)
	}
	lines := Run(t, name, args...)
	if len(lines) != len(packets) {
		t.Fatalf("tshark says something of %d packets; there are %d", len(lines), len(packets))
	}
	wrong := 0
	for i, line := range lines {
		got := strings.Split(line, "\t")
		for j, k := range keys {
			if want := packets[i].Want[k]; j >= len(got) || normal(got[j]) != normal(want) {
				t.Errorf("packet %d: %s is %q, want %q\n%x", i+1, k, got[min(j, len(got)-1)], want, packets[i].IP)
				wrong++
			}
		}
		if wrong > 10 {
			t.Fatal("and so on")
		}
	}
}

// Clean checks that tshark understands all of a capture of weft's: nothing is malformed, none of
// weft's packets is not understood, and the dissector has no errors. It returns how many packets
// there are of each kind, as their comments say.
func Clean(t testing.TB, pcapng []byte) map[string]int {
	t.Helper()
	name := filepath.Join(t.TempDir(), "capture.pcapng")
	if err := os.WriteFile(name, pcapng, 0o600); err != nil {
		t.Fatal(err)
	}
	return CleanFile(t, name)
}

// dissected are the fields that say that tshark has understood a kind.
var dissected = map[string]string{"probe": "weft.probe", "sample": "weft.sample", "update": "weft.update", "scheduler": "weft.scheduler", "feedback": "weft.feedback"}

// CleanFile is Clean of a file.
func CleanFile(t testing.TB, name string) map[string]int {
	t.Helper()
	kinds := make(map[string]int)
	columns := []string{"frame.number", "weft.note.kind"}
	args := []string{"-T", "fields", "-E", "separator=/t", "-e", columns[0], "-e", columns[1]}
	for _, k := range always {
		args = append(args, "-e", k)
	}
	which := slices.Sorted(maps.Keys(dissected))
	for _, k := range which {
		args = append(args, "-e", dissected[k])
	}
	wrong := 0
	for _, line := range Run(t, name, args...) {
		v := strings.Split(line, "\t")
		kind := v[1]
		kinds[kind]++
		for i, k := range always {
			if v[2+i] != "" {
				t.Errorf("packet %s: %s: %s", v[0], k, v[2+i])
				wrong++
			}
		}
		for i, k := range which {
			if k == kind && v[2+len(always)+i] == "" {
				t.Errorf("packet %s is a %s, and tshark does not say so", v[0], k)
				wrong++
			}
		}
		if wrong > 10 {
			t.Fatal("and so on")
		}
	}
	if kinds[""] > 0 {
		t.Errorf("%d packets have no comment", kinds[""])
	}
	return kinds
}

// normal writes what versions of tshark write differently in one way.
func normal(s string) string {
	values := strings.Split(s, ",")
	for i, v := range values {
		switch v {
		case "True":
			values[i] = "1"
		case "False":
			values[i] = "0"
		default:
			values[i] = strings.ToLower(v)
		}
	}
	return strings.Join(values, ",")
}

func write(t testing.TB, name string, packets []Packet) {
	t.Helper()
	to, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	w, err := pcapgo.NewNgWriter(to, layers.LinkTypeRaw)
	for i, p := range packets {
		if err == nil {
			at := time.Date(2027, 1, 1, 0, 0, 0, i*1e6, time.UTC)
			kept := p.IP[:len(p.IP)-p.Cut]
			err = w.WritePacket(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(kept), Length: len(p.IP)}, kept)
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// UDP returns an IP packet with a datagram from and to a port; the checksum of UDP is left out.
func UDP(src, dst netip.Addr, sport, dport uint16, payload []byte) []byte {
	var b []byte
	if src.Is4() {
		b = make([]byte, 20)
		b[0], b[8], b[9] = 0x45, 64, 17
		binary.BigEndian.PutUint16(b[2:], uint16(28+len(payload)))
		copy(b[12:], src.AsSlice())
		copy(b[16:], dst.AsSlice())
		var sum uint32
		for i := 0; i < 20; i += 2 {
			sum += uint32(binary.BigEndian.Uint16(b[i:]))
		}
		sum = sum>>16 + sum&0xffff
		binary.BigEndian.PutUint16(b[10:], ^uint16(sum>>16+sum&0xffff))
	} else {
		b = make([]byte, 40)
		b[0], b[6], b[7] = 0x60, 17, 64
		binary.BigEndian.PutUint16(b[4:], uint16(8+len(payload)))
		copy(b[8:], src.AsSlice())
		copy(b[24:], dst.AsSlice())
	}
	b = binary.BigEndian.AppendUint16(b, sport)
	b = binary.BigEndian.AppendUint16(b, dport)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	return append(append(b, 0, 0), payload...)
}

// Bool is how tshark writes a bit.
func Bool(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// Hex is how it writes a number of so many digits in base 16.
func Hex(v uint64, digits int) string { return fmt.Sprintf("0x%0*x", digits, v) }
