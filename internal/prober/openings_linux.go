package prober

import (
	"bytes"
	"os"
	"time"
)

// openings tells whether the kernel may have opened or closed TCP connections, by its counters
// in /proc/net/snmp. That costs the same however many connections there are.
type openings struct {
	file *os.File // of the network namespace where it was opened; nil: there is none
	last []byte
	buf  []byte
	look time.Time // until when they are taken for changed: a connection takes a while to open
	late time.Time // when they are taken for changed, whatever the counters say
}

const (
	// openLong is how long a connection may take to open, after it is counted.
	openLong = 2 * time.Second
	// lookLeast is how often all connections are looked at, whatever the counters say. The
	// counters do not show a connection that took longer than openLong to open while another
	// was closed.
	lookLeast = 20 * time.Second
)

func (o *openings) open() {
	o.file, _ = os.Open("/proc/thread-self/net/snmp") // without it, each look is at all connections
	o.buf = make([]byte, 4096)
}

func (o *openings) close() {
	if o.file != nil {
		o.file.Close()
	}
}

// changed reports whether connections may have been opened or closed since the last call.
func (o *openings) changed(now time.Time) bool {
	counters := o.read()
	if counters == nil || !bytes.Equal(counters, o.last) {
		o.last = append(o.last[:0], counters...)
		o.look = now.Add(openLong)
	}
	if counters != nil && now.After(o.look) && now.Before(o.late) {
		return false
	}
	o.late = now.Add(lookLeast)
	return true
}

// read returns the counters of connections, nil if they cannot be read.
func (o *openings) read() []byte {
	if o.file == nil {
		return nil
	}
	n, _ := o.file.ReadAt(o.buf, 0)
	return connectionCounters(o.buf[:n])
}

// connectionCounters returns the fields ActiveOpens, PassiveOpens, AttemptFails, EstabResets
// and CurrEstab of /proc/net/snmp, which stand next to each other (net/ipv4/proc.c); nil if the
// text has none.
func connectionCounters(text []byte) []byte {
	const head, before, wanted = "\nTcp: ", 4, 5 // RtoAlgorithm RtoMin RtoMax MaxConn
	for range 2 {                                // names, then values
		i := bytes.Index(text, []byte(head))
		if i < 0 {
			return nil
		}
		text = text[i+len(head):]
	}
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		text = text[:end]
	}
	fields := bytes.Fields(text)
	if len(fields) < before+wanted {
		return nil
	}
	return bytes.Join(fields[before:before+wanted], []byte(" "))
}
