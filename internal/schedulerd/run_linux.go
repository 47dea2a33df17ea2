package schedulerd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/hedera/store"
	"weft/hedera/wire"
	"weft/internal/eventlog"
	"weft/internal/kernel"
	"weft/internal/metrics"
	"weft/internal/service"
)

// dirKind is the kind of the directory that the scheduler of a network namespace has.
const dirKind = "scheduler"

// StatusSocket returns the path of the status socket of the scheduler in the calling
// thread's network namespace, unless its configuration names another.
func StatusSocket() (string, error) {
	dir, err := kernel.NamespaceDir(dirKind)
	return filepath.Join(dir, "status.sock"), err
}

// Run is weft scheduler: it runs one as a configuration file says until a signal or the
// context ends it. On SIGHUP it reads the keys and the topology again. It writes its
// messages to messages, one a line.
func Run(ctx context.Context, name string, signals <-chan os.Signal, messages io.Writer) error {
	f, err := Load(name)
	if err != nil {
		return err
	}
	d := &daemon{name: name, file: f, log: f.Log.To(messages), start: time.Now()}
	defer d.log.Close()
	service.LimitMemory()
	client, err := dial(f)
	if err != nil {
		return f.lines.Errorf("etcd.endpoints", "%w", err)
	}
	var all sync.WaitGroup
	defer end(&all, client, min(f.Etcd.TTL, endWithin))
	if d.server, err = newServer(f, d.start); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer d.server.conn.Close()
	defer cancel()
	if err := d.listen(f); err != nil {
		return err
	}
	defer d.deaf()
	where := store.Config{Client: client, Prefix: f.prefix(), Self: f.listen.String(), TTL: f.Etcd.TTL, Lifetime: f.Lifetime}
	d.loop = service.Loop{Notifier: service.NewNotifier(), Log: d.log, Summary: d.summary, Reload: d.reload, Alive: func() bool { return true }}
	defer d.loop.Close()
	collector := d.collector()
	socket, err := service.ServeStatus(f.Status, standardSocket, func() any { return d.server.status() }, collector)
	if err != nil {
		return f.lines.Errorf("status", "%w", err)
	}
	defer socket.Close()
	over, err := service.ServeMetrics(f.Metrics, collector)
	if err != nil {
		return f.lines.Errorf("metrics.listen", "%w", err)
	}
	defer over.Close()
	c := &candidate{server: d.server, store: where, log: d.log, seed: wire.Random(), period: f.Period, now: d.server.now, atOnce: maxWrite, writeFor: writeFor}
	all.Go(d.server.receive)
	all.Go(func() { c.run(ctx) })
	all.Go(func() { store.Watch(ctx, where, d.server.follow) })
	d.loop.Begin()
	d.serve(ctx, signals)
	d.loop.Stopping()
	return nil
}

// daemon is a run.
type daemon struct {
	name   string
	file   *File
	log    *eventlog.Log
	loop   service.Loop
	server *server
	start  time.Time

	updates *listener // nil: nobody listens
}

// endWithin is how long etcd is waited for at the end. systemd waits longer.
const endWithin = 10 * time.Second

// end waits for all that use the client of etcd, and only then closes it: a leader gives up its key by
// it. If etcd does not answer, the key ends by itself.
func end(all *sync.WaitGroup, client *clientv3.Client, most time.Duration) {
	late := time.AfterFunc(most, func() { client.Close() })
	all.Wait()
	late.Stop()
	client.Close()
}

func standardSocket() (string, error) {
	if _, err := kernel.MakeNamespaceDir(dirKind, -1, -1); err != nil {
		return "", err
	}
	return StatusSocket()
}

// serve waits for what happens.
func (d *daemon) serve(ctx context.Context, signals <-chan os.Signal) {
	watchdog, stop := d.loop.Due()
	defer stop()
	flush := time.NewTicker(10 * time.Second)
	defer flush.Stop()
	for {
		if d.loop.Pending(signals) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case s := <-signals:
			if d.loop.Signal(s) {
				return
			}
		case <-flush.C:
			d.hearAgain()
			d.log.Flush()
		case <-watchdog:
			d.loop.Watch()
		}
	}
}

func (d *daemon) summary() string {
	return fmt.Sprintf("scheduler at %v: %d hosts, %s every %v", d.file.listen, d.file.fabric.Hosts(), d.file.Rule, d.file.Period)
}

var errRestart = errors.New("only keys, accept_unsigned and the links that are down in topology can change while the scheduler runs; restart it (systemctl restart weft-scheduler), which costs no connection")

// reload reads keys and topology again.
func (d *daemon) reload() (string, error) {
	next, err := Load(d.name)
	if err != nil {
		return "", err
	}
	if !d.file.sameButNews(next) {
		return "", fmt.Errorf("%s: %w", d.name, errRestart)
	}
	if err := d.relisten(next); err != nil {
		return "", err
	}
	d.file = next
	return fmt.Sprintf("%d keys", len(next.Keys)), nil
}

// collector exports the status.
func (d *daemon) collector() prometheus.Collector {
	return metrics.Collector(func(w metrics.Writer) {
		s := d.server.status()
		w.Scheduler(metrics.Scheduler{Leads: s.Leads, Nodes: s.Nodes, Flows: s.Known, Placed: s.Placed, Rejected: s.Rejected,
			Refused: s.Refused, Dropped: s.Dropped, Changed: s.Changed, Unwritten: s.Unwritten, EtcdErrors: s.EtcdErrors, Round: time.Duration(s.RoundMS * float64(time.Millisecond))})
	})
}
