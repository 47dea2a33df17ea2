package lab

import (
	"errors"
	"sync"

	"weft/internal/kernel"
)

// DownReport lists what Down has removed.
type DownReport struct {
	Namespaces int // none when there was no such lab
	Ended      []EndedProcess
}

// Down removes a lab, whether complete, half-built or without its state. It also ends the
// processes that run in the lab's namespaces: by SIGTERM, and after 2 s by SIGKILL. It does
// not touch other labs, other processes or this one.
func Down(name string) (r DownReport, err error) {
	if err := checkLabName(name); err != nil {
		return r, err
	}
	if err := requireLabCapabilities(); err != nil {
		return r, err
	}
	lock, err := lockLab(name)
	if err != nil {
		return r, err
	}
	defer lock.release()
	return tearDown(name)
}

// deleters is high because deleting mostly waits for the kernel.
const deleters = 16

// tearDown deletes what there is of a lab, with its lock held. The state goes
// last: a lab of which anything is left can be found.
func tearDown(name string) (r DownReport, err error) {
	names, err := kernel.Namespaces(labPrefix(name))
	if err != nil {
		return r, err
	}
	if err := unready(name); err != nil {
		return r, err
	}
	if err := stopRouting(name); err != nil {
		return r, err
	}
	if len(names) > 0 {
		r.Ended, err = endProcesses(names)
	}
	todo := make(chan string)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range deleters {
		wg.Go(func() {
			for ns := range todo {
				disableMPTCP(ns)
				e := kernel.DeleteNamespace(ns)
				mu.Lock()
				if e == nil {
					r.Namespaces++
				}
				err = errors.Join(err, e)
				mu.Unlock()
			}
		})
	}
	for _, ns := range names {
		todo <- ns
	}
	close(todo)
	wg.Wait()
	if err != nil {
		return r, err
	}
	return r, removeState(name)
}
