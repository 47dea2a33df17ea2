package schedulerd

import (
	"weft/flowcell"
	"weft/hedera"
)

// unwritten is what is to be written to etcd: changes of a round whose write has failed or has not
// been tried. As the next round waits for it, it is bounded by the flows that are known, and those that
// have ended since the round before.
type unwritten struct {
	put, remove map[flowcell.FiveTuple]hedera.Assignment
}

func newUnwritten() *unwritten {
	return &unwritten{make(map[flowcell.FiveTuple]hedera.Assignment), make(map[flowcell.FiveTuple]hedera.Assignment)}
}

func (u *unwritten) add(changed, ended []hedera.Assignment) {
	for _, a := range ended {
		delete(u.put, a.Tuple)
		u.remove[a.Tuple] = a
	}
	for _, a := range changed {
		delete(u.remove, a.Tuple)
		u.put[a.Tuple] = a
	}
}

// written forgets what has been written.
func (u *unwritten) written(put, remove []hedera.Assignment) {
	for _, a := range put {
		delete(u.put, a.Tuple)
	}
	for _, a := range remove {
		delete(u.remove, a.Tuple)
	}
}

func (u *unwritten) lists() (put, remove []hedera.Assignment) {
	for _, a := range u.put {
		put = append(put, a)
	}
	for _, a := range u.remove {
		remove = append(remove, a)
	}
	return put, remove
}

// changes is how many there are.
func (u *unwritten) changes() int { return len(u.put) + len(u.remove) }

// divide divides placements into those of flows of which all is written, and others.
func (u *unwritten) divide(list []hedera.Assignment) (written, others []hedera.Assignment) {
	if u.changes() == 0 {
		return list, nil
	}
	for _, a := range list {
		_, put := u.put[a.Tuple]
		_, remove := u.remove[a.Tuple]
		if put || remove {
			others = append(others, a)
		} else {
			written = append(written, a)
		}
	}
	return written, others
}
