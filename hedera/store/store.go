// Package store keeps what schedulers share on etcd: who leads, and the placements. Only
// the leader writes, and every write is a transaction that holds only while the key by which
// it was elected exists. So a leader that was deposed and does not know it changes nothing,
// and the order of all writes is that of the leaders' epochs. Placements hang on a lease of
// the leader's: they end some time after it does, unless the next one takes them over.
package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/flowcell"
	"weft/hedera"
)

// ErrDeposed says that a write was refused, as this scheduler leads no more.
var ErrDeposed = errors.New("hedera: another scheduler leads now: nothing was written")

// batch is how many placements a transaction has; etcd's own bound is 128 operations.
const batch = 100

// Config is where a fabric's state is.
type Config struct {
	Client *clientv3.Client
	Prefix string        // of all keys, such as /weft/hedera/0123456789abcdef
	Self   string        // what others learn of the leader: its address
	TTL    time.Duration // after how long a leader that is silent is deposed; at least a second
	// Lifetime is after how long placements end if their leader has ended.
	Lifetime time.Duration

	unguarded bool // for tests of the tests: writes have no guard
}

// Keep has the placements last for another Lifetime. It returns false if they are gone: then
// all must be written again.
func (t *Term) Keep(ctx context.Context) (bool, error) {
	if _, err := t.c.Client.KeepAliveOnce(ctx, t.lease); err == nil {
		return true, nil
	} else if !gone(err) {
		return false, fmt.Errorf("etcd: %w", err)
	}
	lease, err := t.c.grant(ctx, t.c.Lifetime)
	if err != nil {
		return false, err
	}
	t.lease = lease
	return false, nil
}

// gone reports whether an error says that a lease has ended.
func gone(err error) bool { return strings.Contains(err.Error(), "requested lease not found") }

// Write writes placements and removes others. If there is nothing to write it asks etcd all the
// same whether this scheduler leads: what is told to nodes needs that.
//
// Errors: ErrDeposed, after which some of put and remove may have been written while the
// term lasted; others leave open what was written.
func (t *Term) Write(ctx context.Context, put, remove []hedera.Assignment) error {
	ops := make([]clientv3.Op, 0, batch)
	committed := false
	flush := func() error {
		if len(ops) == 0 && committed {
			return nil
		}
		txn := t.c.Client.Txn(ctx)
		if !t.c.unguarded {
			txn = txn.If(clientv3.Compare(clientv3.CreateRevision(t.key), "=", t.rev))
		}
		r, err := txn.Then(ops...).Commit()
		ops, committed = ops[:0], true
		switch {
		case err != nil:
			return fmt.Errorf("etcd: %w", err)
		case !r.Succeeded:
			return ErrDeposed
		}
		return nil
	}
	add := func(op clientv3.Op) error {
		if ops = append(ops, op); len(ops) == batch {
			return flush()
		}
		return nil
	}
	for _, a := range put {
		value, err := json.Marshal(recordOf(a, t.Epoch()))
		if err == nil {
			err = add(clientv3.OpPut(t.c.keyOf(a.Tuple), string(value), clientv3.WithLease(t.lease)))
		}
		if err != nil {
			return err
		}
	}
	for _, a := range remove {
		if err := add(clientv3.OpDelete(t.c.keyOf(a.Tuple))); err != nil {
			return err
		}
	}
	return flush()
}

// keyOf is the key of a flow's placement.
func (c *Config) keyOf(t flowcell.FiveTuple) string {
	src, dst := t.Src.IP().As16(), t.Dst.IP().As16()
	b := append(append([]byte{t.Proto}, src[:]...), dst[:]...)
	b = append(b, byte(t.SrcPort>>8), byte(t.SrcPort), byte(t.DstPort>>8), byte(t.DstPort))
	return c.placements() + hex.EncodeToString(b)
}

func (c *Config) placements() string { return c.Prefix + "/placements/" }

// record is a placement as it is stored.
type record struct {
	Proto uint8          `json:"proto"`
	Src   netip.AddrPort `json:"src"`
	Dst   netip.AddrPort `json:"dst"`
	Node  netip.Addr     `json:"node"`
	Path  int            `json:"path"`
	Via   netip.Addr     `json:"via"`
	Epoch uint64         `json:"epoch"` // of the leader that wrote it
}

func recordOf(a hedera.Assignment, epoch uint64) record {
	t := a.Tuple
	return record{t.Proto, netip.AddrPortFrom(t.Src.IP(), t.SrcPort), netip.AddrPortFrom(t.Dst.IP(), t.DstPort), a.Node, a.Path, a.Via, epoch}
}

func (r *record) assignment() hedera.Assignment {
	return hedera.Assignment{Node: r.Node, Path: r.Path, Via: r.Via, Tuple: flowcell.FiveTuple{Proto: r.Proto,
		Src: flowcell.AddressFrom(r.Src.Addr()), SrcPort: r.Src.Port(),
		Dst: flowcell.AddressFrom(r.Dst.Addr()), DstPort: r.Dst.Port()}}
}

// pageSize is how many placements are read at once.
const pageSize = 1000

// Load reads all placements, at most so many. Those that cannot be read, as somebody else
// has written them, are left out and counted.
func Load(ctx context.Context, c Config, most int) (list []hedera.Assignment, strange int, err error) {
	end := clientv3.GetPrefixRangeEnd(c.placements())
	for from := c.placements(); len(list) < most; {
		r, err := c.Client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageSize))
		if err != nil {
			return nil, strange, fmt.Errorf("etcd: %w", err)
		}
		for _, kv := range r.Kvs {
			var rec record
			if err := json.Unmarshal(kv.Value, &rec); err != nil || !rec.Src.IsValid() || !rec.Dst.IsValid() || string(kv.Key) != c.keyOf(rec.assignment().Tuple) {
				strange++
				continue
			}
			list = append(list, rec.assignment())
		}
		if !r.More {
			break
		}
		from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
	}
	return list[:min(len(list), most)], strange, nil
}

// Get reads the placement of a flow, linearizably. ok is false if it has none.
func Get(ctx context.Context, c Config, t flowcell.FiveTuple) (a hedera.Assignment, ok bool, err error) {
	r, err := c.Client.Get(ctx, c.keyOf(t))
	if err != nil {
		return a, false, fmt.Errorf("etcd: %w", err)
	}
	if len(r.Kvs) == 0 {
		return a, false, nil
	}
	var rec record
	if err := json.Unmarshal(r.Kvs[0].Value, &rec); err != nil {
		return a, false, fmt.Errorf("etcd: the placement of %v is none: %w", t, err)
	}
	return rec.assignment(), true, nil
}
