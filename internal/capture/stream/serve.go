package stream

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"weft/internal/capture/tap"
)

const (
	// room is how many packets wait for one who reads slowly.
	room = 1 << 14
	// writeTime bounds how long one who reads is waited for.
	writeTime = 10 * time.Second
	// pulse is how often the connection is tried while there is nothing to tell.
	pulse = time.Second
)

// Pattern is where a daemon serves its Tap.
const Pattern = "GET /capture"

// Serve answers with the packets of a Tap until the one who asked goes. The query's snap is how
// many bytes of each are wanted.
func Serve(t *tap.Tap) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		snap := 0
		if s := r.URL.Query().Get("snap"); s != "" {
			var err error
			if snap, err = strconv.Atoi(s); err != nil || snap < 0 {
				http.Error(w, fmt.Sprintf("snap=%q: write how many bytes of each packet are wanted, 0 for all", s), http.StatusBadRequest)
				return
			}
		}
		s := t.Subscribe(snap, room)
		defer s.Close()
		c := http.NewResponseController(w)
		w.Header().Set("Content-Type", "application/octet-stream")
		c.SetWriteDeadline(time.Now().Add(writeTime))
		c.Flush()
		tick := time.NewTicker(pulse)
		defer tick.Stop()
		var b []byte
		for {
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
				c.SetWriteDeadline(time.Now().Add(writeTime))
			case rec := <-s.Records():
				s.Took(&rec)
				b = Append(b[:0], &rec, s.Dropped())
				for len(s.Records()) > 0 && len(b) < 1<<18 {
					rec = <-s.Records()
					s.Took(&rec)
					b = Append(b, &rec, s.Dropped())
				}
				c.SetWriteDeadline(time.Now().Add(writeTime))
				if _, err := w.Write(b); err != nil {
					return
				}
				if c.Flush() != nil {
					return
				}
			}
		}
	})
}
