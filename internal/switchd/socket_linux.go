package switchd

import (
	"io"
	"path/filepath"

	"weft/internal/kernel"
	"weft/internal/service"
)

// dirKind is the kind of the directory that the agent of a network namespace has.
const dirKind = "switch"

// clockFile is a file in that directory, in which the agent remembers the time.
const clockFile = "clock"

// StatusSocket returns the path of the status socket of the agent in the calling thread's
// network namespace, unless its configuration names another.
func StatusSocket() (string, error) {
	dir, err := kernel.NamespaceDir(dirKind)
	return filepath.Join(dir, "status.sock"), err
}

// makeDir makes the agent's directory and gives it to a user. -1 keeps the owner that it
// has.
func makeDir(uid, gid int) (string, error) {
	return kernel.MakeNamespaceDir(dirKind, uid, gid, clockFile)
}

// listen opens the status socket, in the place of one that a crash left. Closing
// removes it; the directory, which may be empty then, stays.
func (d *daemon) listen() (io.Closer, error) {
	standard := func() (string, error) {
		if _, err := makeDir(-1, -1); err != nil {
			return "", err
		}
		return StatusSocket()
	}
	socket, err := service.ServeStatus(d.file.Status, standard, func() any { return d.status() }, d.collector())
	if err != nil {
		return nil, d.file.lines.Errorf("status", "%w", err)
	}
	return socket, nil
}
