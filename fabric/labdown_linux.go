package fabric

import (
	"errors"
	"sync"
)

// Down removes a lab, whether complete, half-built or without its state, and
// returns how many namespaces it deleted: none when there is no such lab.
// Other labs are not touched. Processes in the lab are not ended; each keeps
// its namespace, now without a name, until it exits.
func Down(name string) (deleted int, err error) {
	if err := checkLabName(name); err != nil {
		return 0, err
	}
	if err := requireLabCapabilities(); err != nil {
		return 0, err
	}
	lock, err := lockLab(name)
	if err != nil {
		return 0, err
	}
	defer lock.release()
	return tearDown(name)
}

// deleters is high because deleting is waiting for the kernel.
const deleters = 16

// tearDown deletes what there is of a lab, with its lock held. The state goes
// last: a lab of which anything is left can be found.
func tearDown(name string) (deleted int, err error) {
	names, err := namespaces(labPrefix(name))
	if err != nil {
		return 0, err
	}
	todo := make(chan string)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range deleters {
		wg.Go(func() {
			for ns := range todo {
				e := deleteNamespace(ns)
				mu.Lock()
				if e == nil {
					deleted++
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
		return deleted, err
	}
	return deleted, removeState(name)
}
