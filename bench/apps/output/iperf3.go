package output

import "encoding/json"

// IPerf3 checks that iperf3 -J says that this many bytes were sent, and received but for what a
// receiver leaves in its socket.
func IPerf3(text string, bytes int64) error {
	const program = "iperf3"
	type sum struct {
		Bytes   float64
		Seconds float64
	}
	var o struct {
		Error string
		End   struct {
			Sent     sum `json:"sum_sent"`
			Received sum `json:"sum_received"`
		}
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return wrong(program, text, "no JSON object (%v)", err)
	}
	if o.Error != "" {
		return wrong(program, text, "%s", o.Error)
	}
	if s := o.End.Sent; s.Bytes < float64(bytes) || s.Seconds <= 0 {
		return wrong(program, text, "%.0f bytes were sent in %g s in place of %d", s.Bytes, s.Seconds, bytes)
	}
	if r := o.End.Received; r.Bytes < 0.5*float64(bytes) {
		return wrong(program, text, "%.0f bytes were received in place of %d", r.Bytes, bytes)
	}
	return nil
}
