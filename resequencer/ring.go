package resequencer

// ring is a place in a doubly linked list that runs through the items themselves,
// so that linking allocates nothing. A list's head is a ring that belongs to no
// item. It is linked to itself while the list is empty.
type ring[T any] struct {
	prev, next *ring[T]
	of         *T // nil in a head
}

// init makes r a list of itself alone.
func (r *ring[T]) init(of *T) { r.prev, r.next, r.of = r, r, of }

// insertAfter links r, which is in no list, behind at.
func (r *ring[T]) insertAfter(at *ring[T]) {
	r.prev, r.next = at, at.next
	at.next.prev = r
	at.next = r
}

// remove unlinks r.
func (r *ring[T]) remove() {
	r.prev.next = r.next
	r.next.prev = r.prev
	r.prev, r.next = r, r
}
