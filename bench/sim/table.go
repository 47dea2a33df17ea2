package sim

import "unsafe"

// table has numbered items. It grows by blocks, so that items do not move, and uses those again
// that were freed last.
type table[T any] struct {
	blocks []*[tableBlock]T
	n      uint32 // of those taken at some time
	unused []uint32
}

const (
	tableBlock = 256
	// large is from how many bytes on a table is worth huge pages.
	large = 1 << 20
)

// at returns an item by its number.
func (t *table[T]) at(i uint32) *T { return &t.blocks[i/tableBlock][i%tableBlock] }

// take returns the number of an item, which is as it was when it was freed.
func (t *table[T]) take() uint32 {
	if n := len(t.unused); n > 0 {
		i := t.unused[n-1]
		t.unused = t.unused[:n-1]
		return i
	}
	if t.n%tableBlock == 0 {
		t.grow()
	}
	t.n++
	return t.n - 1
}

func (t *table[T]) grow() {
	b := new([tableBlock]T)
	t.blocks = append(t.blocks, b)
	if uintptr(len(t.blocks))*unsafe.Sizeof(*b) >= large {
		adviseHugePages(unsafe.Pointer(b))
	}
}

// free gives an item back.
func (t *table[T]) free(i uint32) { t.unused = append(t.unused, i) }
