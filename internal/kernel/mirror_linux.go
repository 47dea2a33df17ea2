package kernel

import "github.com/cilium/ebpf"

// Mirror has a hash map's entries be those that are wanted. It remembers what it has written, so
// that it writes what changes and no more. It reads the map at the first call, and after an error.
// Nobody else may write the map. It is not safe for concurrent use.
type Mirror[K, V comparable] struct {
	m   entries[K, V]
	has map[K]V // nil: the map is to be read
}

// entries is what a Mirror needs of a map.
type entries[K, V comparable] interface {
	all() (map[K]V, error)
	put(K, V) error
	remove(K) error
}

// NewMirror returns one of a map that it has not read yet.
func NewMirror[K, V comparable](m *ebpf.Map) *Mirror[K, V] { return &Mirror[K, V]{m: hashMap[K, V]{m}} }

// Set makes the entries those of want, which it keeps, and returns how many it has changed. Entries
// that stay the same are in the map all the time. After an error some are as they were.
func (r *Mirror[K, V]) Set(want map[K]V) (changed int, err error) {
	has := r.has
	r.has = nil
	if has == nil {
		if has, err = r.m.all(); err != nil {
			return 0, err
		}
	}
	for key := range has { // first, as the map may be full
		if _, wanted := want[key]; wanted {
			continue
		}
		if err := r.m.remove(key); err != nil {
			return changed, err
		}
		changed++
	}
	for key, value := range want {
		if was, ok := has[key]; ok && was == value {
			continue
		}
		if err := r.m.put(key, value); err != nil {
			return changed, err
		}
		changed++
	}
	if r.has = want; want == nil {
		r.has = make(map[K]V)
	}
	return changed, nil
}

// SyncMap is Mirror.Set of a map that others may have written: it reads it. It leaves want alone.
func SyncMap[K, V comparable](m *ebpf.Map, want map[K]V) (changed int, err error) {
	return NewMirror[K, V](m).Set(want)
}

// hashMap is a map of the kernel's.
type hashMap[K, V comparable] struct{ *ebpf.Map }

func (m hashMap[K, V]) all() (map[K]V, error) {
	var key K
	var value V
	list := make(map[K]V)
	it := m.Iterate()
	for it.Next(&key, &value) {
		list[key] = value
	}
	return list, it.Err()
}

func (m hashMap[K, V]) put(key K, value V) error { return m.Put(key, value) }

func (m hashMap[K, V]) remove(key K) error { return m.Delete(key) }
