package membership

import (
	"fmt"
	"io"
	"slices"

	"weft/internal/table"
)

// Times are seconds.
type Times struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// Row is how long it took until others acted on what happened to a host.
type Row struct {
	Event   string `json:"event"`
	Killing bool   `json:"killing"` // members of etcd were killed and cut meanwhile
	Events  int    `json:"events"`
	Last    *Times `json:"last_seconds"` // until the last of those that etcd reaches has acted
	Each    *Times `json:"each_seconds"` // until each has; null: only the host itself does
}

// Result is what a run found.
type Result struct {
	Hosts   int      `json:"hosts"`
	Kills   int      `json:"kills"`
	Cuts    Cuts     `json:"cuts"`
	Seconds float64  `json:"seconds"`
	Rows    []Row    `json:"rows"`
	Left    int      `json:"left"`    // events that something else overtook
	Renewed int      `json:"renewed"` // keys, of hosts that stay
	Traffic Traffic  `json:"traffic"` // between hosts that stay
	Foreign Foreign  `json:"foreign"` // what is not to be accepted
	Whole   bool     `json:"whole"`   // at the end all hosts that stay knew each other
	Errors  []string `json:"errors,omitempty"`
}

// Cuts are how often networks were cut.
type Cuts struct {
	HostFromEtcd int `json:"host_from_etcd"`
	HostFromHost int `json:"host_from_host"`
	EtcdMinority int `json:"etcd_minority"`
}

// Traffic is what hosts sent each other that stay.
type Traffic struct {
	Connections int    `json:"connections"`
	Lost        int    `json:"lost"`
	Exchanges   uint64 `json:"exchanges"` // of bytes there and back, compared
	Bytes       uint64 `json:"bytes"`
	Refused     uint64 `json:"refused"` // datagrams that hosts refused to which nobody forged any
	Late        uint64 `json:"late"`    // and that came behind so many others that their numbers are not remembered: processors were busy
}

// Foreign is what was sent that nobody is to accept.
type Foreign struct {
	Forged         int    `json:"forged"`         // datagrams by a wrong key, none, or a changed one
	Former         int    `json:"former"`         // by a key that the host has replaced
	Replayed       int    `json:"replayed"`       // recorded ones
	Expired        uint64 `json:"expired"`        // sent by hosts whose registration had ended, or was to end
	Registrations  int    `json:"registrations"`  // written over those of hosts
	Taken          int    `json:"taken"`          // times that a host took such a registration of one that it knew
	AcceptedBytes  uint64 `json:"accepted_bytes"` // of all that, after the receiver had been told
	Refused        uint64 `json:"refused"`        // datagrams, as counted by the hosts that were sent to
	ControlSent    int    `json:"control_sent"`   // forged by the right key, at the end
	ControlArrived int    `json:"control_arrived"`

	Usurped []Usurpation `json:"usurped"` // Registrations and Taken, by what was written
}

// Usurpation is a way to take a host's place by writing the directory.
type Usurpation struct {
	What  string `json:"what"`
	Tried int    `json:"tried"`
	Taken int    `json:"taken"`
	// MovedBytes were sent where the registration said by hosts that had known the host, and FirstUseBytes
	// by hosts that came while it stood.
	MovedBytes    uint64 `json:"moved_bytes"`
	FirstUseBytes uint64 `json:"first_use_bytes"`
}

// Failed says what is wrong about the result; "" if nothing is.
func (r *Result) Failed() string {
	switch {
	case len(r.Errors) > 0:
		return r.Errors[0]
	case r.Traffic.Lost > 0:
		return fmt.Sprintf("%d of %d connections were lost", r.Traffic.Lost, r.Traffic.Connections)
	case r.Foreign.AcceptedBytes > 0:
		return fmt.Sprintf("%d bytes of forged or expired peers were accepted", r.Foreign.AcceptedBytes)
	case r.Foreign.Taken > 0:
		return fmt.Sprintf("%d forged registrations were taken", r.Foreign.Taken)
	case slices.ContainsFunc(r.Foreign.Usurped, func(u Usurpation) bool { return u.MovedBytes > 0 }):
		return "traffic moved to who had written a registration over another one's"
	case r.Traffic.Refused > 0:
		return fmt.Sprintf("%d datagrams of peers were refused", r.Traffic.Refused)
	case r.Foreign.ControlArrived == 0:
		return "no datagram by the right key arrived: that none of the others did shows nothing"
	case !r.Whole:
		return "at the end not all hosts that stay knew each other"
	}
	return ""
}

// Print prints tables.
func (r *Result) Print(w io.Writer) error {
	fmt.Fprintf(w, "%d hosts, 3 members of etcd, %.0f s; the leader killed %d times; cut: a host from etcd %d times, from another one %d times, a minority of etcd %d times\n\n",
		r.Hosts, r.Seconds, r.Kills, r.Cuts.HostFromEtcd, r.Cuts.HostFromHost, r.Cuts.EtcdMinority)
	lines := table.Table{Head: []string{"a host", "etcd", "events", "last: median s", "p99", "max", "each: median s", "p99", "max"}, Text: 2, Keys: 2}
	for _, row := range r.Rows {
		when := "whole"
		if row.Killing {
			when = "killed"
		}
		cells := slices.Concat([]string{row.Event, when, fmt.Sprint(row.Events)}, row.Last.cells(), row.Each.cells())
		lines.Rows = append(lines.Rows, cells)
	}
	if err := lines.Write(w, table.Width); err != nil {
		return err
	}
	t, f := r.Traffic, r.Foreign
	fmt.Fprintf(w, "\n%d connections, %d lost; %d exchanges of %.1f MB; %d keys replaced; %d datagrams of peers refused, %d too late\n",
		t.Connections, t.Lost, t.Exchanges, float64(t.Bytes)/1e6, r.Renewed, t.Refused, t.Late)
	_, err := fmt.Fprintf(w, "%d forged, %d by former keys, %d replayed, %d sent by expired peers: %d bytes accepted, %d datagrams refused; control by the right key: %d of %d accepted\n",
		f.Forged, f.Former, f.Replayed, f.Expired, f.AcceptedBytes, f.Refused, f.ControlArrived, f.ControlSent)
	fmt.Fprintf(w, "%d registrations written over those of others: %d taken\n", f.Registrations, f.Taken)
	for _, u := range f.Usurped {
		fmt.Fprintf(w, "  %s: %d tried, %d taken, %d bytes moved (%d of hosts that came meanwhile)\n", u.What, u.Tried, u.Taken, u.MovedBytes, u.FirstUseBytes)
	}
	if why := r.Failed(); why != "" {
		fmt.Fprintln(w, "FAILED:", why)
	}
	return err
}

func (t *Times) cells() []string {
	if t == nil {
		return []string{"", "", ""}
	}
	var list []string
	for _, x := range []float64{t.Median, t.P99, t.Max} {
		list = append(list, fmt.Sprintf("%.2f", x))
	}
	return list
}
