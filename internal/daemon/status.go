package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	"weft/stack"
)

// Status is what a daemon says of itself. Sections that are not in use are left
// out. Counters are since the start, and begin anew where a reload says so.
type Status struct {
	Mode          string `json:"mode"`
	Encapsulation string `json:"encapsulation"`
	Topology      string `json:"topology,omitempty"`
	Policy        string `json:"policy"`
	Address       string `json:"address,omitempty"`
	Uplink        string `json:"uplink,omitempty"`
	Gateway       string `json:"gateway,omitempty"`
	MTU           int    `json:"mtu"`
	Process       int    `json:"process"`
	Uptime        int64  `json:"uptime_s"` // seconds
	Reloads       int    `json:"reloads"`

	// Congestion is what the policy knows of the paths to racks that are sent to.
	// How often the program at the uplink has chosen each is in Offload.
	Congestion []stack.Congestion `json:"congestion,omitempty"`
	Samples    *SampleStatus      `json:"samples,omitempty"`

	Failures  *FailureStatus    `json:"failures,omitempty"`
	Devices   map[string]Device `json:"devices,omitempty"`
	Offload   any               `json:"offload,omitempty"`   // fabric.OffloadStats, since the program was attached last
	Steer     any               `json:"steer,omitempty"`     // fabric.SteerStats
	Dataplane any               `json:"dataplane,omitempty"` // stack.GatewayStats
}

// SampleStatus counts the samples of paths' congestion.
type SampleStatus struct {
	Table         any    `json:"table,omitempty"` // luopan.Stats: own samples, and what became of them; under a policy that samples
	Decided       uint64 `json:"decided"`         // choices that the program at the uplink was told
	Failed        uint64 `json:"failed"`          // that it did not take, or times that it could not be asked
	PeersAnswered uint64 `json:"peers_answered"`
	PeersRefused  uint64 `json:"peers_refused"` // too many, or made no sense
	Unsent        uint64 `json:"unsent"`
	Drops         uint64 `json:"drops"`
}

// FailureStatus is what is known of failures.
type FailureStatus struct {
	Down    []string     `json:"down"` // links that no path is to use
	Changes uint64       `json:"changes"`
	Error   string       `json:"error,omitempty"`   // why the latest change was not carried out
	Updates any          `json:"updates,omitempty"` // listen.Status
	Probes  any          `json:"probes,omitempty"`  // prober.Stats
	Paths   []PathStatus `json:"paths,omitempty"`   // that are not simply up
}

// PathStatus is the state of a path as probes see it.
type PathStatus struct {
	To    string  `json:"to"` // own address: the bouncing switch and back
	Via   string  `json:"via"`
	State string  `json:"state"`
	Why   string  `json:"why,omitempty"`
	RTT   float64 `json:"rtt_ms"`
	Loss  float64 `json:"loss"` // part of the latest probes
}

// Device is what a device could get of the kernel, and what it has lost.
type Device struct {
	Offloads string `json:"offloads"`
	Drops    uint64 `json:"drops"`
}

// answerTime bounds how long one who asks is waited for.
const answerTime = time.Second

// maxStatus bounds an answer, in bytes.
const maxStatus = 16 << 20

// answer writes the status to each who connects, one after the other, until the
// listener is closed.
func answer(l net.Listener, status func() Status) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		conn.SetDeadline(time.Now().Add(answerTime))
		if b, err := json.Marshal(status()); err == nil {
			conn.Write(append(b, '\n'))
		}
		conn.Close()
	}
}

// AskStatus returns the status, as JSON, of the daemon behind a socket.
func AskStatus(ctx context.Context, socket string) ([]byte, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("status: %w; is weft host running in this network namespace? (--socket names another's)", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * answerTime))
	b, err := io.ReadAll(io.LimitReader(conn, maxStatus))
	if err == nil && !json.Valid(b) {
		err = fmt.Errorf("%s: not a status: %q", socket, b[:min(len(b), 40)])
	}
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	return bytes.TrimSpace(b), nil
}

// Field is a value of a status and its full name.
type Field struct{ Name, Value string }

// Fields flattens JSON: {"a":{"b":[1]}} is a.b.0 = 1. The order is that of the
// text, so a newer daemon's status is printed in full, too.
func Fields(text []byte) ([]Field, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var fields []Field
	err := flatten(d, "", &fields)
	return fields, err
}

func flatten(d *json.Decoder, name string, fields *[]Field) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	open, ok := t.(json.Delim)
	if !ok {
		if t == nil {
			t = "-"
		}
		*fields = append(*fields, Field{name, fmt.Sprint(t)})
		return nil
	}
	if name != "" {
		name += "."
	}
	for i := 0; d.More(); i++ {
		key := fmt.Sprint(i)
		if open == '{' {
			t, err := d.Token()
			if err != nil {
				return err
			}
			key = fmt.Sprint(t)
		}
		if err := flatten(d, name+key, fields); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
