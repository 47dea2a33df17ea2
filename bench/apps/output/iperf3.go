package output

import "encoding/json"

// IPerf3 checks that iperf3 -R -J says that this many bytes were received.
func IPerf3(text string, bytes int64) error {
	const program = "iperf3"
	var o struct {
		Error string
		End   struct {
			Received struct {
				Bytes, Seconds float64
			} `json:"sum_received"`
		}
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return wrong(program, text, "no JSON object (%v)", err)
	}
	if o.Error != "" {
		return wrong(program, text, "%s", o.Error)
	}
	if r := o.End.Received; r.Bytes < float64(bytes) || r.Seconds <= 0 {
		return wrong(program, text, "%.0f bytes were received in %g s in place of %d", r.Bytes, r.Seconds, bytes)
	}
	return nil
}
