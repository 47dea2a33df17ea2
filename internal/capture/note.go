package capture

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"weft/conga"
	"weft/flowcell"
)

// Note is what is known of a packet. As text (String) it is the packet's comment in a
// capture.
type Note struct {
	Layers
	Kind Kind
	// Path is the path's number for the pair of hosts, -1 if it is not known. Bounce is the
	// name of the switch where it turns, or its address.
	Path   int
	Bounce string
	// Learned says that the path is not in the packet itself: the packet was seen before,
	// with its outer header.
	Learned bool
	// Number is the packet's flowcell and place in it, if Numbered. The header has it whether
	// the sender means it or not: a hint.
	Numbered bool
	Number   flowcell.Number
	Mark     *conga.Mark // CONGA's, in place of a number
	// Again says that the segment begins below what this interface has seen of its flow.
	Again bool
	Hold  time.Duration
	Cause string
	Point Point
}

// Kind says what a packet is for.
type Kind uint8

// The kinds.
const (
	KindOther     Kind = iota
	KindData           // TCP with payload, SYN, FIN or RST
	KindACK            // TCP that only acknowledges
	KindProbe          // encap.Probe
	KindSample         // encap.Sample
	KindUpdate         // of package topoupdate
	KindScheduler      // of package hedera/wire
	KindFeedback       // encap.Feedback
	KindICMP
	kinds
)

var kindNames = [kinds]string{"other", "data", "ack", "probe", "sample", "update", "scheduler", "feedback", "icmp"}

// KindNames are the names of all kinds, as ParseKind reads them.
func KindNames() []string { return slices.Clone(kindNames[:]) }

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return "unknown"
}

// prefix is what comments begin with.
const prefix = "weft:"

// String writes what is known as key=value pairs behind "weft:". The dissector of
// packaging/wireshark reads them. Values have neither spaces nor "=".
func (n *Note) String() string {
	var b strings.Builder
	b.WriteString(prefix)
	put := func(key, value string) {
		b.WriteByte(' ')
		b.WriteString(key)
		b.WriteByte('=')
		b.WriteString(value)
	}
	put("point", n.Point.String())
	put("kind", n.Kind.String())
	if n.Carrier != "" {
		put("carrier", n.Carrier)
	}
	if n.Path >= 0 {
		put("path", strconv.Itoa(n.Path))
	}
	if n.Bounce != "" {
		put("via", n.Bounce)
	}
	if n.Learned {
		put("path-from", "sender")
	}
	if len(n.Labels) > 0 {
		put("labels", strings.Trim(strings.ReplaceAll(fmt.Sprint(n.Labels), " ", ","), "[]"))
	}
	if n.Numbered {
		put("flowcell", strconv.Itoa(int(n.Number.Cell())))
		put("segment", strconv.Itoa(int(n.Number.Index())))
	}
	if m := n.Mark; m != nil {
		put("tag", strconv.Itoa(int(m.Tag)))
		put("metric", strconv.Itoa(int(m.Metric)))
		if m.Feedback {
			put("feedback", "1")
		}
	}
	if n.Again {
		put("again", "1")
	}
	if n.Point == PointDelivered {
		put("hold", n.Hold.String())
		if n.Cause != "" {
			put("cause", n.Cause)
		}
	}
	return b.String()
}

// ParseComment reads the keys and values of a comment that String has written. ok is false if
// it is another's.
func ParseComment(comment string) (fields map[string]string, ok bool) {
	rest, ok := strings.CutPrefix(comment, prefix)
	if !ok {
		return nil, false
	}
	fields = make(map[string]string)
	for _, pair := range strings.Fields(rest) {
		if key, value, ok := strings.Cut(pair, "="); ok {
			fields[key] = value
		}
	}
	return fields, true
}

// Restore completes a Record that was read from a file by its comment.
func (r *Record) Restore(comment string) {
	fields, ok := ParseComment(comment)
	if !ok {
		return
	}
	for i, name := range pointNames {
		if fields["point"] == name {
			r.Point = Point(i)
		}
	}
	if r.Point == PointDelivered {
		r.Hold, _ = time.ParseDuration(fields["hold"])
		r.Cause = fields["cause"]
	}
}

// Fabric names paths. Topology is one.
type Fabric interface {
	// Path finds the path that a packet from one host to another takes by its outer
	// destination. ok is false if it is none that is known.
	Path(src, dst, via netip.Addr) (number int, bounce string, ok bool)
}
