package apps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// waiting says that it is there, waits until its standard input ends, and becomes the program of
// its arguments.
const waiting = `echo >&3; exec 3>&-; read -r _; exec "$@" </dev/null`

// gathered are programs that have been started and wait for each other. Their standard input is one
// pipe: when its other end is closed all of them begin.
type gathered struct {
	all        []*process
	begin      *os.File // closed: they begin
	wait       *os.File // their end of it
	said, here *os.File // each writes a byte to here, and closes it
}

func newGathered() (g *gathered, err error) {
	g = new(gathered)
	if g.wait, g.begin, err = os.Pipe(); err != nil {
		return nil, err
	}
	if g.said, g.here, err = os.Pipe(); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// start starts a program in the namespace of the calling thread. It waits.
func (g *gathered) start(c *exec.Cmd, until string) error {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return err
	}
	name := filepath.Base(c.Path)
	c.Args = append([]string{"sh", "-c", waiting, "sh", c.Path}, c.Args[1:]...)
	c.Path, c.Stdin, c.ExtraFiles = shell, g.wait, []*os.File{g.here} // its descriptor 3
	p, err := start(c, until)
	if err != nil {
		return err
	}
	p.name = name
	g.all = append(g.all, p)
	return nil
}

// release lets all begin at one instant, when all are there. It returns the instant.
func (g *gathered) release(ctx context.Context) (begin time.Time, err error) {
	if err := g.here.Close(); err != nil {
		return begin, err
	}
	defer context.AfterFunc(ctx, func() { g.said.SetReadDeadline(time.Now()) })()
	said, err := io.ReadAll(io.LimitReader(g.said, int64(len(g.all))+1)) // until each has closed its end
	if ctx.Err() != nil {
		return begin, fmt.Errorf("%d of %d clients have started: %w", bytes.Count(said, []byte("\n")), len(g.all), ctx.Err())
	}
	if err != nil {
		return begin, err
	}
	if n := bytes.Count(said, []byte("\n")); n != len(g.all) {
		return begin, fmt.Errorf("%d of %d clients wait for each other; the shell of one has ended (%s)", n, len(g.all), g.printed())
	}
	begin = time.Now()
	return begin, g.begin.Close()
}

// printed is what the programs have printed.
func (g *gathered) printed() string {
	var s strings.Builder
	for _, p := range g.all {
		s.WriteString(p.out.String())
	}
	return fmt.Sprintf("they printed %.200q", s.String())
}

// close frees the pipes. What still waits begins.
func (g *gathered) close() (err error) {
	for _, f := range []*os.File{g.wait, g.begin, g.said, g.here} {
		if f == nil {
			continue
		}
		if e := f.Close(); !errors.Is(e, os.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}
