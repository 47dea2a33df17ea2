package fabric

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// classifierLease is how long the program believes what Step has told it.
const classifierLease = 3 * time.Second

// Step tells the program that somebody looks after it. When an interval has passed it reads
// what flows have sent, moves some and tells the program. Call it ten times a second or more
// often. now counts from any moment; the first interval begins with the first call.
func (c *Classifier) Step(now time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.h == nil {
		return errClassifierClosed
	}
	failed := c.beat()
	if !c.begun {
		c.begun, c.next = true, now+c.rule.Interval
	}
	if now >= c.next {
		c.next = now + c.rule.Interval
		failed = errors.Join(failed, c.findPorts(), c.rearrange(now))
	}
	if failed != nil {
		return fmt.Errorf("classifier: %w", failed)
	}
	return nil
}

// beat has the program go on for a while.
func (c *Classifier) beat() error {
	now, err := kernel.Monotonic()
	if err != nil {
		return err
	}
	c.set.Until = now + uint64(classifierLease)
	return kernel.Explain(c.program.Maps[classifyMapSettings].Put(uint32(0), c.set))
}

// rearrange ends an interval.
func (c *Classifier) rearrange(now time.Duration) (failed error) {
	flows := c.program.Maps[classifyMapFlows]
	var key classifyKey
	var state classifyState
	list := flows.Iterate()
	for list.Next(&key, &state) {
		c.table.Observe(key.flow(), int(state.Port), state.Bytes, now)
	}
	failed = kernel.Explain(list.Err())
	moves, idle := c.table.Rearrange(now)
	for _, f := range idle {
		c.stats.Evicted++
		failed = errors.Join(failed, gone(flows.Delete(keyOf(f))))
	}
	for _, m := range moves {
		key := keyOf(m.Flow)
		if err := flows.Lookup(key, &state); err == nil {
			state.Port = uint32(m.To)
			failed = errors.Join(failed, gone(flows.Update(key, state, ebpf.UpdateExist)))
			c.stats.Moved++
		}
	}
	return errors.Join(failed, c.tellLoads())
}

// findPorts finds the devices of the ports that lead down, which may be new ones, and says
// which ports up are dead.
func (c *Classifier) findPorts() error {
	all, err := kernel.Dumped(c.h.LinkList)
	if err != nil {
		return kernel.Explain(fmt.Errorf("list the links: %w", err))
	}
	c.lower = named(all, c.down)
	live := make(map[string]bool)
	for _, link := range all {
		a := link.Attrs()
		live[a.Name] = a.Flags&net.FlagUp != 0 && a.OperState != netlink.OperDown && a.OperState != netlink.OperLowerLayerDown
	}
	for i, name := range c.up {
		c.table.SetDead(i, !live[name])
	}
	return nil
}

// named are those of some links that have one of the names.
func named(all []netlink.Link, names []string) (list []netlink.Link) {
	for _, link := range all {
		if slices.Contains(names, link.Attrs().Name) {
			list = append(list, link)
		}
	}
	return list
}

// tellLoads says what ports have carried, which the choice for new flows goes by.
func (c *Classifier) tellLoads() (failed error) {
	for i := range c.up {
		load := classifyLoad{Bytes: c.table.Load(i)}
		if c.table.Dead(i) {
			load.Dead = 1
		}
		failed = errors.Join(failed, c.program.Maps[classifyMapLoads].Put(uint32(i), load))
	}
	return kernel.Explain(failed)
}

// gone ignores that a flow is not there any more.
func gone(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return kernel.Explain(err)
}

// Repair tells the program at once which ports are dead, and puts it back at ports that have
// lost it, or have a new device. It returns a sentence for each thing it has mended. It needs
// CAP_NET_ADMIN.
func (c *Classifier) Repair() (mended []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.h == nil {
		return nil, errClassifierClosed
	}
	if err := errors.Join(c.findPorts(), c.tellLoads()); err != nil {
		return nil, fmt.Errorf("classifier: %w", err)
	}
	return c.repairProgram()
}

// RepairSettings is Repair for the program at the devices that have been found. Call it
// often: the kernel does not tell when it is removed, and looking is cheap.
func (c *Classifier) RepairSettings() (mended []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.h == nil {
		return nil, errClassifierClosed
	}
	return c.repairProgram()
}

func (c *Classifier) repairProgram() (mended []string, err error) {
	if mended, err = c.program.Repair(c.h, c.lower); err != nil {
		err = fmt.Errorf("classifier: %w", err)
	}
	return mended, err
}
