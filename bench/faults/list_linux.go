package faults

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"weft/internal/kernel/disturb"
	"weft/lab"
)

// All returns the faults, those of cables first, then switches, the network's settings, hosts
// and daemons.
func All() []Fault {
	var all []Fault
	for _, list := range [][]Fault{ofCables, ofSwitches, ofUpdates, ofHosts, ofDaemons} {
		all = append(all, list...)
	}
	return all
}

// failing fails a link or a node of the lab.
func failing(target string, mode lab.FailureMode) func(*Bed) (func() error, error) {
	return func(b *Bed) (func() error, error) {
		_, err := b.lab.Fail(target, mode)
		return func() error { _, err := b.lab.Heal(target); return err }, err
	}
}

// ends are ports that lead from a node to another.
type end struct{ from, to string }

func bothEnds(a, b string) []end { return []end{{a, b}, {b, a}} }

// disturbing disturbs what leaves by some ports.
func disturbing(d disturb.Disturbance, at ...end) func(*Bed) (func() error, error) {
	return func(b *Bed) (func() error, error) {
		var all []*disturb.Disturber
		heal := func() (err error) {
			for _, o := range all {
				err = errors.Join(err, o.Close())
			}
			return err
		}
		for _, e := range at {
			var o *disturb.Disturber
			if err := b.do(e.from, func() (err error) { o, err = disturb.Attach(b.port(e.from, e.to), d); return err }); err != nil {
				return heal, err
			}
			all = append(all, o)
		}
		return heal, nil
	}
}

// script runs one at nodes, and one that mends it.
func script(breaks, mends string, nodes ...string) func(*Bed) (func() error, error) {
	each := func(b *Bed, script string) (err error) {
		for _, n := range nodes {
			err = errors.Join(err, b.shell(n, script))
		}
		return err
	}
	return func(b *Bed) (func() error, error) {
		return func() error { return each(b, mends) }, each(b, breaks)
	}
}

// filtering has nodes drop what a rule of nftables matches.
func filtering(hook, match string, nodes ...string) func(*Bed) (func() error, error) {
	return script("nft add table ip wrong; nft 'add chain ip wrong c { type filter hook "+hook+" priority 0; }'; nft add rule ip wrong c "+match+" drop",
		"nft delete table ip wrong", nodes...)
}

// setting sets a file of /proc/sys, and sets it back.
func setting(file, value, node string) func(*Bed) (func() error, error) {
	return func(b *Bed) (func() error, error) {
		saved := filepath.Join(b.dir, "saved")
		return func() error { return b.shell(node, fmt.Sprintf("cat %s > /proc/sys/%s", saved, file)) },
			b.shell(node, fmt.Sprintf("cat /proc/sys/%s > %s; echo %s > /proc/sys/%[1]s", file, saved, value))
	}
}

// slowed sets the rate of a link, at both ends.
func slowed(x, y string, part float64) func(*Bed) (func() error, error) {
	return func(b *Bed) (func() error, error) {
		set := func(rate float64) (err error) {
			for _, e := range bothEnds(x, y) {
				err = errors.Join(err, b.shell(e.from, fmt.Sprintf("tc qdisc change dev %s root handle 1: tbf rate %gmbit burst 3200 limit %d",
					b.port(e.from, e.to), rate, int(75000*rate/b.options.Rate))))
			}
			return err
		}
		return func() error { return set(b.options.Rate) }, set(b.options.Rate * part)
	}
}

// flapping has a link fail and come back all the time.
func flapping(link string, each time.Duration) func(*Bed) (func() error, error) {
	return func(b *Bed) (func() error, error) {
		stop, ended := make(chan struct{}), make(chan error, 1)
		_, err := b.lab.Fail(link, lab.FailLoud)
		go func() {
			down := true
			for {
				select {
				case <-stop:
					if down {
						_, err := b.lab.Heal(link)
						ended <- err
					} else {
						ended <- nil
					}
					return
				case <-time.After(each):
				}
				if down {
					_, _ = b.lab.Heal(link)
				} else {
					_, _ = b.lab.Fail(link, lab.FailLoud)
				}
				down = !down
			}
		}()
		return func() error { close(stop); return <-ended }, err
	}
}

// signalling sends a daemon a signal. mend is sent to heal; 0: it is started anew.
func signalling(node string, s, mend syscall.Signal) func(*Bed) (func() error, error) {
	return func(b *Bed) (func() error, error) {
		heal := func() error {
			if mend != 0 {
				return b.signal(node, mend)
			}
			return errors.Join(b.stop(node), b.startHost(node, ""))
		}
		return heal, b.signal(node, s)
	}
}
