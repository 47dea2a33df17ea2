package switchd

import (
	"encoding/json"
	"net"
	"time"
)

// answerTime bounds how long one who asks is waited for.
const answerTime = time.Second

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
