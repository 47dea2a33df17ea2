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

// stepFlows bounds how many flows a Step reads, and how many it deletes: who calls it may have
// routes to repair.
const stepFlows = 8192

// Step tells the program that somebody looks after it. When an interval has passed it reads
// what flows have sent, moves some and tells the program. It reads up to 8,192 flows at a
// time: with more the interval is longer by some calls. Call it ten times a second or more
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
	if now >= c.next && c.cursor == nil && !c.idle {
		c.next, c.cursor = now+c.rule.Interval, new(ebpf.MapBatchCursor)
		failed = errors.Join(failed, c.findPorts())
	}
	if c.cursor != nil {
		failed = errors.Join(failed, c.read(now))
	} else if c.idle {
		failed = errors.Join(failed, c.forget(now))
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

// read reads some flows. After the last ones it ends the interval.
func (c *Classifier) read(now time.Duration) error {
	if c.keys == nil {
		c.keys, c.states = make([]classifyKey, stepFlows), make([]classifyState, stepFlows)
	}
	n, err := c.program.Maps[classifyMapFlows].BatchLookup(c.cursor, c.keys, c.states, nil)
	for i := range n {
		c.table.Observe(c.keys[i].flow(), int(c.states[i].Port), c.states[i].Bytes, now)
	}
	if err == nil {
		return nil // there are more
	}
	c.cursor = nil
	if !errors.Is(err, ebpf.ErrKeyNotExist) {
		return kernel.Explain(fmt.Errorf("read the flows: %w", err))
	}
	return errors.Join(c.rearrange(), c.forget(now))
}

// rearrange ends an interval.
func (c *Classifier) rearrange() (failed error) {
	flows := c.program.Maps[classifyMapFlows]
	for _, m := range c.table.Rearrange() {
		key := keyOf(m.Flow)
		var state classifyState
		if err := flows.Lookup(key, &state); err == nil {
			state.Port = uint32(m.To)
			failed = errors.Join(failed, gone(flows.Update(key, state, ebpf.UpdateExist)))
			c.stats.Moved++
		}
	}
	return errors.Join(failed, c.tellLoads())
}

// forget deletes some of the idle flows.
func (c *Classifier) forget(now time.Duration) error {
	some := c.table.Forget(now, stepFlows)
	c.idle = len(some) == stepFlows
	keys := make([]classifyKey, len(some))
	for i, f := range some {
		keys[i] = keyOf(f)
	}
	c.stats.Evicted += uint64(len(keys))
	for len(keys) > 0 { // a flow that is not there ends a batch
		n, err := c.program.Maps[classifyMapFlows].BatchDelete(keys, nil)
		if err == nil {
			break
		}
		if err := gone(err); err != nil {
			return err
		}
		keys = keys[min(n+1, len(keys)):]
	}
	return nil
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
