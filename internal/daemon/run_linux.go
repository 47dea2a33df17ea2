package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"syscall"
	"time"

	"weft/internal/notify"
)

// beat is how often the dataplane's life is confirmed to the steering program,
// which gives it a second.
const beat = 100 * time.Millisecond

// Run is weft host: it sets the machine up as a configuration file says and
// carries its packets until a signal or the context ends it. SIGHUP makes it
// read the file again. All threads of the process must be in one network
// namespace. messages, a line each, go to log.
func Run(ctx context.Context, file string, signals <-chan os.Signal, messages io.Writer) (err error) {
	c, err := Load(file)
	if err != nil {
		return err
	}
	if err := dropPrivileges(c); err != nil {
		return err
	}
	d := &daemon{file: file, config: c, log: log.New(messages, "", 0), notify: notify.New(), started: time.Now()}
	defer d.notify.Close()
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.start(ctx); err != nil {
		return err
	}
	d.notify.Ready(d.summary())
	d.log.Print(d.summary())
	return d.serve(ctx, signals)
}

// serve waits for what happens.
func (d *daemon) serve(ctx context.Context, signals <-chan os.Signal) error {
	every := time.NewTicker(beat)
	defer every.Stop()
	watchdog, stop := d.notify.Due()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-signals:
			if s != syscall.SIGHUP {
				d.log.Printf("%v: stopping", s)
				return nil
			}
			d.reload(ctx)
		case <-d.dataplaneDone():
			return fmt.Errorf("the dataplane has ended: %w", d.dataplane.Err())
		case <-every.C:
			if d.steer != nil {
				if err := d.steer.Beat(); err != nil {
					return err
				}
			}
			d.warn()
		case <-watchdog:
			d.notify.Watchdog()
		}
	}
}

// dataplaneDone is never ready where there is no dataplane.
func (d *daemon) dataplaneDone() <-chan struct{} {
	if d.dataplane == nil {
		return nil
	}
	return d.dataplane.Done()
}
